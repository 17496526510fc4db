"""The averages against every average that the paper prints."""

import re

import pytest

from swe_tf.scoring import averages

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

# Averages are printed with two digits; a little room for floating point.
_TOLERANCE = 0.005 + 1e-9


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


def _differences(column):
  return {
    "SQuAD average": (averages.squad_average(column) - column["SQuAD average"]),
    "GLUE average": averages.glue_average(column) - column["GLUE average"],
  }


def test_every_printed_average_is_reproduced(shared):
  (tex,) = (shared / "paper").glob("*.tex")
  columns = list(_columns(tex.read_text()))
  assert len(columns) == 8 + 8 + 4 + 7 + 3
  wrong = [
    (table, index, name, round(difference, 3))
    for table, index, column in columns
    for name, difference in _differences(column).items()
    if abs(difference) > _TOLERANCE
  ]
  assert wrong == []


def test_one_column_without_the_paper():
  for name, difference in _differences(_COLUMN).items():
    assert abs(difference) <= _TOLERANCE, name


def test_missing_row_is_named():
  with pytest.raises(ValueError, match="AX"):
    averages.glue_average({"QQP": 72.0})
