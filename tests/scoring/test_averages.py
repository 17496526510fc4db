"""The averages against every average that the paper prints."""

import pytest

from swe_tf.analysis import paper
from swe_tf.scoring import column


def test_every_printed_average_is_reproduced():
  # tests/analysis/test_paper.py compares the tables with the paper's source.
  assert len(paper.TABLES) == 8 + 8 + 4 + 7 + 3
  for printed in paper.TABLES.to_dict("records"):
    found = column.with_averages(printed)
    assert list(found) == list(column.ROWS)
    for row, value in found.items():
      assert value == pytest.approx(printed[row], abs=0.005 + 1e-9), printed


def test_an_incomplete_average_is_left_out():
  found = column.with_averages({"QQP": 72.0, "AX": 36.0, "squad_v1.1": 90.0})
  assert found == {"squad_v1.1": 90.0, "AX": 36.0, "QQP": 72.0}
