"""The rules that look at the cosines of adjacent units' gradients."""

import os

import tensorflow as tf

from swe_tf.sharing import adaptive
from swe_tf.sharing import schedule

_WHOLE = (0, 0, 0, 0)
_HIGH, _LOW = 0.9, 0.1


def _ask(rule, step, *adjacent, groups=_WHOLE):
  cosines = schedule.GradientCosines(sum(adjacent) / 3, adjacent)
  return rule.regroup(step, cosines, groups)


class UntieByCorrelationTest(tf.test.TestCase):
  def test_looks_every_interval(self):
    rule = adaptive.UntieByCorrelation(interval=10)
    self.assertEqual(rule.cosine_interval, 10)
    self.assertEqual(
      [rule.next_decision(s) for s in (0, 9, 10, 15)], [10, 10, 20, 20]
    )
    for step in (0, 5, 11):  # Not its steps: nothing is decided.
      self.assertEqual(_ask(rule, step, _LOW, _LOW, _LOW), _WHOLE)
    self.assertEmpty(rule.decisions)

  def test_unties_when_most_are_low_three_times_in_a_row(self):
    rule = adaptive.UntieByCorrelation(interval=10)
    most, few = (_LOW, _LOW, _HIGH), (_LOW, _HIGH, _HIGH)
    seen = []
    for i, cosines in enumerate((most, most, few, most, most, most), 1):
      seen.append(_ask(rule, 10 * i, *cosines))
    self.assertEqual(seen, [_WHOLE] * 5 + [schedule.UNTIED])
    self.assertEqual(
      [d["times_low"] for d in rule.decisions],
      [[1], [2], [0], [1], [2], [3]],
    )

  def test_half_is_not_most(self):
    rule = adaptive.UntieByCorrelation(interval=10, patience=1)
    cosines = schedule.GradientCosines(0.5, (_LOW, _LOW, _HIGH, _HIGH))
    self.assertEqual(rule.regroup(10, cosines, (0,) * 5), (0,) * 5)

  def test_rho_itself_is_not_low(self):
    rule = adaptive.UntieByCorrelation(interval=10, rho=0.5, patience=1)
    self.assertEqual(_ask(rule, 10, 0.5, 0.5, 0.5), _WHOLE)

  def test_what_was_not_measured_counts_for_nothing(self):
    rule = adaptive.UntieByCorrelation(interval=10, patience=2)
    _ask(rule, 10, _LOW, _LOW, _LOW)
    self.assertEqual(_ask(rule, 20, *[float("nan")] * 3), _WHOLE)
    self.assertLen(rule.decisions, 1)
    self.assertEqual(_ask(rule, 30, _LOW, _LOW, _LOW), schedule.UNTIED)

  def test_decides_once_for_a_step(self):
    rule = adaptive.UntieByCorrelation(interval=10, patience=2)
    for _ in range(3):
      self.assertEqual(_ask(rule, 10, _LOW, _LOW, _LOW), _WHOLE)
    self.assertLen(rule.decisions, 1)

  def test_one_unit_has_no_neighbour(self):
    rule = adaptive.UntieByCorrelation(interval=10, patience=1)
    nothing = schedule.GradientCosines(float("nan"), ())
    self.assertEqual(rule.regroup(10, nothing, (0,)), (0,))


class SplitTest(tf.test.TestCase):
  def test_cuts_where_the_units_disagree(self):
    rule = adaptive.UntieByCorrelation(interval=1, patience=2, split=True)
    groups, seen = _WHOLE, []
    for step, cosines in enumerate(
      (
        (_HIGH, _LOW, _LOW),
        (_LOW, _LOW, _HIGH),  # The second pair: twice.
        (_LOW, _HIGH, _LOW),  # The first: twice. A cut stays a cut.
        (_HIGH, _HIGH, _LOW),  # The third: twice. All are alone.
      ),
      start=1,
    ):
      groups = _ask(rule, step, *cosines, groups=groups)
      seen.append(groups)
    self.assertEqual(
      seen, [_WHOLE, (0, 0, 2, 2), (0, 1, 2, 2), schedule.UNTIED]
    )
    self.assertEqual(
      [d["times_low"] for d in rule.decisions],
      [[0, 1, 1], [1, 2, 0], [2, 0, 1], [0, 0, 2]],
    )

  def test_goes_on_from_a_checkpoint(self):
    def make():
      return adaptive.UntieByCorrelation(interval=1, patience=3, split=True)

    rule = make()
    for step in (1, 2):
      _ask(rule, step, _LOW, _HIGH, _HIGH)
    path = tf.train.Checkpoint(untie_rule=rule).save(
      os.path.join(self.get_temp_dir(), "rule")
    )
    restored = make()
    tf.train.Checkpoint(untie_rule=restored).restore(path)
    self.assertEqual(restored.decisions, rule.decisions)
    self.assertEqual(_ask(restored, 2, _LOW, _LOW, _LOW), _WHOLE)  # Decided.
    self.assertEqual(_ask(restored, 3, _LOW, _LOW, _LOW), (0, 1, 1, 1))
    other = make()
    other.deserialize(restored.serialize())
    self.assertEqual(other.decisions, restored.decisions)


if __name__ == "__main__":
  tf.test.main()
