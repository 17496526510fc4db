"""The paper's numbers against the paper's source."""

import re

import pytest

from swe_tf.analysis import paper
from swe_tf.scoring import averages

_METRICS = {
  "Pretrain": "MLM",
  "SQuAD average": "SQuAD average",
  "GLUE average": "GLUE average",
  "SQuAD v1.1": "squad_v1.1",
  "SQuAD v2.0": "squad_v2.0",
}


def _tables(tex):
  """Yields the rows of numbers of every table, by metric."""
  for body in re.findall(r"\\begin{tabular}(.*?)\\end{tabular}", tex, re.S):
    rows = {}
    for line in body.replace("\\hline", "").splitlines():
      head, *cells = line.split("&")
      found = [re.findall(r"\d+\.\d+", cell) for cell in cells]
      if cells and all(len(numbers) == 1 for numbers in found):
        name = next(
          (
            metric
            for start, metric in _METRICS.items()
            if head.strip().startswith(start)
          ),
          head.partition("/")[2].split(" ")[0],
        )
        rows[name] = [float(numbers[0]) for numbers in found]
    if rows:
      yield rows


def test_every_number_is_the_printed_one(shared):
  (tex,) = (shared / "paper").glob("*.tex")
  tables = list(_tables(tex.read_text()))
  assert len(tables) == len(paper.TABLES)
  for number, rows in enumerate(tables, start=1):
    held = paper.TABLES[number]
    assert set(rows) == set(paper.METRICS)
    for metric, values in rows.items():
      assert [paper.scores(number, run)[metric] for run in held] == values


def test_runs_that_stand_in_two_tables_are_the_same():
  seen = {}
  for table, runs in paper.TABLES.items():
    for run in runs:
      scores = paper.scores(table, run)
      assert seen.setdefault(run, scores) == scores, (table, run)
      assert averages.glue_average(scores) == pytest.approx(
        scores["GLUE average"], abs=0.0051
      )
