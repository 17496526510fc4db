"""Steps to the baseline's final loss, against numbers by hand."""

import math

import pytest

from swe_tf.analysis import comparisons
from swe_tf.analysis import groups
from swe_tf.analysis import scalars
from swe_tf.analysis import speed
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run


@pytest.mark.parametrize(
  "curve, target, step",
  [
    ([(10, 3.0), (20, 1.0)], 2.0, 15.0),
    ([(10, 3.0), (20, 1.0)], 1.0, 20.0),
    ([(10, 3.0), (20, 1.0)], 0.9, None),
    ([(10, 3.0), (20, 1.0)], 3.5, 10.0),
    # The first time counts, also if the loss goes up again.
    ([(10, 3.0), (20, 1.0), (30, 2.0), (40, 0.5)], 2.5, 12.5),
    ([(10, math.nan), (20, 1.0)], 2.0, 20.0),
    ([], 1.0, None),
  ],
)
def test_interpolation(curve, target, step):
  assert scalars.steps_to_reach(curve, target) == step


def _measure(tmp_path, *curves):
  """Returns the speed of SWE runs by their curves; seed i ends at 2 + i."""
  for seed, curve in enumerate(curves):
    write_run(
      tmp_path / f"b{seed}", config(seed=seed), 2.0 + seed, curve=[(50, 5.0)]
    )
    write_run(
      tmp_path / f"s{seed}",
      config(seed=seed, sharing=swe()),
      curve[-1],
      curve=[(50, curve[0])],
    )
  (comparison,) = comparisons.compare(fake_runs.read(tmp_path))
  baseline, group = comparison.groups.values()
  return speed.measure(group, baseline), speed.measure(baseline, baseline)


def test_ratios_are_paired_by_seed(tmp_path):
  # Seed 0: from 4 to 1, down at 2 after 2/3; seed 1: from 5 to 1, at 3 after
  # 1/2. With the targets exchanged they would be 1/3 and 3/4.
  found, control = _measure(tmp_path, (4.0, 1.0), (5.0, 1.0))
  ratios = [(50 + 50 * 2 / 3) / 100, (50 + 50 / 2) / 100]
  assert found.steps_ratio.mean == pytest.approx(sum(ratios) / 2)
  assert found.steps_ratio.std == pytest.approx(
    abs(ratios[0] - ratios[1]) / math.sqrt(2)
  )
  assert (found.reached, found.pairs, found.validation_points) == (2, 2, 2)
  assert control.steps_ratio == groups.Statistic(1.0, 0.0, 2)
  assert found.reverse_ratio is None  # The baseline never gets down to 1.


def test_no_ratio_if_a_seed_never_gets_there(tmp_path):
  found, _ = _measure(tmp_path, (4.0, 1.0), (5.0, 3.5))
  assert found.steps_ratio is None
  assert (found.reached, found.pairs) == (1, 2)


def test_the_reverse_is_the_baselines_way_to_the_methods_end(tmp_path):
  # The baseline goes from 5 to 2 and from 5 to 3, and is at 3.5 after half and
  # three quarters of that.
  found, _ = _measure(tmp_path, (4.0, 3.5), (5.0, 3.5))
  assert found.steps_ratio is None
  assert found.reverse_ratio.mean == pytest.approx((0.75 + 0.875) / 2)
