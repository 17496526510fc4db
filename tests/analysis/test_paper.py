"""The paper's numbers against the paper's source, and beside which runs."""

import re
import types

import pytest

from swe_tf.analysis import paper
from swe_tf.analysis import report
from swe_tf.analysis import runs as runs_lib
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run

_METRICS = {"Pretrain": "MLM", "SQuAD average": "SQuAD average"}
_METRICS |= {"GLUE average": "GLUE average"}
_METRICS |= {f"SQuAD v{v}": f"squad_v{v}" for v in ("1.1", "2.0")}
_LARGE = dict(
  layers=24,
  width=1024,
  num_attention_heads=16,
  intermediate_size=4096,
  vocab_size=30522,
  steps=500_000,
  data="shards/wikibooks/*.tfrecord",
)


def _tables(tex):
  """Yields the rows of numbers of every table, by metric."""
  for body in re.findall(r"\\begin{tabular}(.*?)\\end{tabular}", tex, re.S):
    rows = {}
    for line in body.replace("\\hline", "").splitlines():
      head, *cells = line.split("&")
      found = [re.findall(r"\d+\.\d+", cell) for cell in cells]
      if cells and all(len(numbers) == 1 for numbers in found):
        known = [m for s, m in _METRICS.items() if head.strip().startswith(s)]
        name = (known or [head.partition("/")[2].split(" ")[0]])[0]
        rows[name] = [float(numbers[0]) for numbers in found]
    if rows:
      yield rows


def test_every_number_is_the_printed_one(shared):
  (tex,) = (shared / "paper").glob("*.tex")
  tables = list(_tables(tex.read_text()))
  assert len(tables) == paper.TABLES.table.nunique()
  for number, rows in enumerate(tables, start=1):
    held = paper.TABLES[paper.TABLES.table == number]
    assert set(rows) == set(paper.METRICS)
    for metric, values in rows.items():
      assert held[metric].tolist() == values


def test_runs_that_stand_in_two_tables_are_the_same():
  scores = paper.TABLES.drop(columns="table").drop_duplicates()
  assert not scores.duplicated(list(paper.RUN)).any()


def _config(batch_size=512, seq_length=512, **fields):
  content = config(**(_LARGE | fields))
  size = {"global_batch_size": batch_size, "seq_length": seq_length}
  content["task"]["train_data"] |= size
  return content


@pytest.mark.parametrize(
  "changes, row",
  [
    ({}, ("wikibooks", "baseline", 1)),
    (dict(sharing=swe()), ("wikibooks", "swe", 1)),
    (dict(sharing=swe(unit_size=2)), ("wikibooks", "swe", 2)),
    (dict(growth="net2net"), ("wikibooks", "net2net", 1)),
    (
      dict(sharing={"mode": "reparameterize"}),
      ("wikibooks", "reparameterize", 1),
    ),
    (dict(data="xlnet/*"), ("xlnet", "baseline", 1)),
    (dict(sharing=swe(0.2)), None),
    (dict(sharing=swe(1.0)), None),
    (dict(sharing=swe(unit_size=8)), None),
    (dict(sharing=swe(rule="adaptive")), None),
    (dict(growth="stacking"), None),
    (dict(data="shards/*.tfrecord"), None),
    (dict(steps=400_000), None),
    (dict(width=64), None),
    (dict(num_attention_heads=8), None),
    (dict(vocab_size=100), None),
    (dict(batch_size=256), None),
    (dict(seq_length=128), None),
  ],
)
def test_which_row_of_the_paper_a_run_is(changes, row):
  run = types.SimpleNamespace(**runs_lib.describe(_config(**changes)))
  data, *method = row or ("", "")
  expected = ("large", data, 500_000, *method) if row else None
  assert paper.row_of(run) == expected


def test_the_paper_stands_beside_its_rows_only(tmp_path):
  write_run(tmp_path / "own" / "base", config(), 2.0)
  write_run(tmp_path / "own" / "swe", config(sharing=swe()), 2.0)
  names = [section.name for section in report.make([tmp_path]).sections]
  assert "paper" not in names
  write_run(tmp_path / "base", _config(), 2.0, 0.70)
  write_run(tmp_path / "swe", _config(sharing=swe()), 2.0, 0.72)
  sections = {s.name: s for s in report.make([tmp_path]).sections}
  base, own = sections["paper"].frame.to_dict("records")
  assert (base["method"], base["paper"]) == ("baseline", 73.66)
  assert base["gain"] is None
  assert own["minus"] == pytest.approx(72 - 73.92, abs=1e-4)
  assert own["gain"].mean == pytest.approx(2.0, abs=1e-4)
  assert own["paper_gain"] == pytest.approx(0.26)
