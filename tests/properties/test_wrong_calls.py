"""Any file of any kind gives a result or one line, and nothing is written.

The same campaign as `python -m benchmarks.bad_input --count=1000`, shorter.
"""

import os

import pytest

from benchmarks import bad_input
from benchmarks import generated_calls

_COUNT = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 40


@pytest.mark.parametrize("name", generated_calls.CLASSES)
def test_a_result_or_one_line(name, monkeypatch):
  monkeypatch.setenv("SWE_PLUGINS", "")  # Put back at the end.
  outcomes = bad_input.generate(name, 0, _COUNT)
  assert len(outcomes) == _COUNT
  assert not [outcome for outcome in outcomes if outcome.fault]
  # Neither kind is missing from a class.
  assert {0, 2} <= {outcome.status for outcome in outcomes}
