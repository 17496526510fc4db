"""The averages against every average that the paper prints."""

import re

from swe_tf.scoring import column as column_lib

_ROW_NAMES = {
  "SQuAD v1.1 (F-1%)": "squad_v1.1",
  "SQuAD v2.0 (F-1%)": "squad_v2.0",
  "GLUE/AX (corr%)": "AX",
  "GLUE/MNLI-m (acc.%)": "MNLI-m",
  "GLUE/MNLI-mm (acc.%)": "MNLI-mm",
  "GLUE/QNLI (acc.%)": "QNLI",
  "GLUE/QQP (F-1%)": "QQP",
  "GLUE/SST-2 (acc.%)": "SST-2",
  "SQuAD average": "SQuAD average",
  "GLUE average": "GLUE average",
}

# The first column of Table 2, to check one without the paper at hand.
_COLUMN = dict(
  zip(
    _ROW_NAMES.values(),
    (91.29, 82.00, 36.4, 85.4, 85.0, 92.0, 71.5, 93.5, 86.65, 77.30),
  )
)


def _columns(tex):
  """Yields every column of the tables as a dict from row name to number."""
  for number, table in enumerate(
    re.findall(r"\\begin{tabular}(.*?)\\end{tabular}", tex, re.S), start=1
  ):
    rows = {}
    for line in table.split("\\\\"):
      name, *cells = [cell.strip() for cell in line.split("&")]
      name = name.replace("\\hline", "").replace("\\", "").strip()
      if name in _ROW_NAMES:
        rows[_ROW_NAMES[name]] = [
          float(re.search(r"[\d.]+", cell).group()) for cell in cells
        ]
    if rows:
      assert set(rows) == set(_ROW_NAMES.values())
      for index in range(len(rows["AX"])):
        yield number, index, {name: row[index] for name, row in rows.items()}


def _wrong(column):
  """Returns the averages that are not the printed ones, to two digits."""
  found = column_lib.with_averages(column)
  assert list(found) == list(column_lib.ROWS)
  return {
    name: found[name]
    for name in column_lib.ROWS
    if abs(found[name] - column[name]) > 0.005 + 1e-9
  }


def test_every_printed_average_is_reproduced(shared):
  (tex,) = (shared / "paper").glob("*.tex")
  columns = list(_columns(tex.read_text()))
  assert len(columns) == 8 + 8 + 4 + 7 + 3
  wrong = {(table, i): _wrong(column) for table, i, column in columns}
  assert not any(wrong.values()), wrong


def test_one_column_without_the_paper():
  assert _wrong(_COLUMN) == {}
  assert _wrong(_COLUMN | {"QQP": 71.6}) == {"GLUE average": 77.31666666666666}
  incomplete = column_lib.with_averages({"QQP": 72.0, "AX": 36.0})
  assert incomplete == {"AX": 36.0, "QQP": 72.0}
