"""Schedules say the same at every step; plans have each variable in one tie."""

import ast
import functools

from hypothesis import given
from hypothesis import strategies as st
import pytest
import tf_keras

import swe_tf
from swe_tf import errors
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib

_UNITS = 12
_WHOLE = (0,) * _UNITS
_NOTHING = schedule.GradientCosines(float("nan"))


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_tau_is_the_fraction_to_half_a_step(steps, fraction, other):
  resolve = untie_step_lib.resolve_untie_step
  tau = resolve(steps, untie_fraction=fraction)
  assert 0 <= tau <= steps
  assert abs(tau - fraction * steps) <= 0.5
  low, high = sorted((fraction, other))
  first, last = (resolve(steps, untie_fraction=f) for f in (low, high))
  assert first <= last
  half = tau // 2
  assert resolve(steps, untie_fraction=fraction, untie_step=half) == half


@given(st.integers(0, 99), st.integers())
def test_tau_is_within_the_run(steps, tau):
  if 0 <= tau <= steps:
    assert untie_step_lib.resolve_untie_step(steps, untie_step=tau) == tau
  else:
    with pytest.raises(errors.UsageError, match=r"untie_step \("):
      untie_step_lib.resolve_untie_step(steps, untie_step=tau)


@st.composite
def staged_rules(draw):
  tau = draw(st.integers(1, 30))
  any_step = st.integers(1, max(1, tau - 1))
  starts = draw(st.lists(any_step, unique=True, max_size=3))
  factors = draw(st.sampled_from([(2, 4, 12), (3, 6, 12), (2, 6, 12)]))
  stages = list(zip(sorted(s for s in starts if s < tau), factors))
  return schedule.UntieInStages(tau, draw(st.permutations(stages)))


def _walk(rule, groups, begin, end):
  """Returns the groups of each update, asked only where the rule says so."""
  found, step = [], begin
  while step < end:
    if groups != schedule.UNTIED:
      groups = rule.regroup(step, _NOTHING, groups)
    coming = rule.next_decision(step)
    stop = end if coming is None else min(coming, end)
    assert stop > step
    found += [groups] * (stop - step)
    step = stop
  return found


@given(staged_rules(), st.integers(1, 40), st.data())
def test_stages(rule, end, data):
  walked = _walk(rule, _WHOLE, 0, end)
  # The obvious way: the unit of every update from the list of stages.
  for step, groups in enumerate(walked):
    size = max([1, *(units for begin, units in rule.stages if begin <= step)])
    expected = tuple(u % size for u in range(_UNITS))
    assert groups == (schedule.UNTIED if step >= rule.untie_step else expected)
  # Stopped anywhere and resumed in the groups of the checkpoint.
  stop = data.draw(st.integers(0, end - 1))
  before = walked[stop - 1] if stop else _WHOLE
  assert walked == walked[:stop] + _walk(rule, before, stop, end)


@given(
  st.lists(
    st.tuples(st.integers(-1, 12), st.none() | st.integers(0, 40)), max_size=3
  ),
  st.integers(0, 40),
)
def test_loops(stages, tau):
  tables = [
    {"loops": count} | ({} if until is None else {"until_step": until})
    for count, until in stages
  ]
  ends = [tau if until is None else until for _, until in stages]
  counts = [count for count, _ in stages]
  is_rising = all(
    0 < a < b
    for rising in ([0.5, *counts, 12.5], [0.5, *ends, tau + 0.5])
    for a, b in zip(rising, rising[1:])
  )
  make = lambda: untie_step_lib.resolve_loops(
    tables, num_units=12, untie_step=tau, train_steps=40
  )
  if not is_rising and stages:
    with pytest.raises(errors.UsageError, match="task.sharing.loops"):
      make()
    return
  found = make()
  for step in range(45):
    coming = [count for count, end in zip(counts, ends) if step < end]
    assert found.loops_at(step) == (coming[0] if coming else 12)
    change = found.next_change(step)
    expected = min((end for end in ends if end > step), default=None)
    assert change == expected


@given(
  st.integers(1, 3),
  st.sampled_from([-0.5, 0.0, 0.5]),
  st.lists(
    st.lists(st.sampled_from([-0.9, -0.2, 0.2, 0.9]), min_size=3, max_size=3),
    max_size=8,
  ),
  st.integers(0, 8),
)
def test_correlation_counts_in_a_row_and_survives_a_stop(
  patience, rho, measured, stop
):
  make = lambda: schedule.UntieByCorrelation(2, rho, patience)
  rule, groups = make(), (0, 0, 0, 0)
  low = [[cosine < rho for cosine in row] for row in measured]
  for number, row in enumerate(measured):
    if number == stop:
      text, rule = rule.serialize(), make()
      rule.deserialize(text)
    cosines = schedule.GradientCosines(sum(row) / 3, tuple(row))
    groups = rule.regroup(2 * (number + 1), cosines, groups)
    # Asked twice, it decides once.
    assert rule.regroup(2 * (number + 1), cosines, groups) == groups
    assert len(rule.decisions) == number + 1
    last = low[max(0, number + 1 - patience) : number + 1]
    is_over = len(last) == patience and all(sum(row) > 1 for row in last)
    assert groups == (schedule.UNTIED if is_over else (0, 0, 0, 0))
    if is_over:
      break


_MOST = 8


@functools.cache
def _layers():
  layers = [tf_keras.layers.Dense(1) for _ in range(_MOST)]
  for layer in layers:
    layer.build([None, 1])
  return layers


def _number(variable):
  """Returns the layer of a variable, and whether it is a kernel."""
  for i, layer in enumerate(_layers()):
    if variable is layer.kernel or variable is layer.bias:
      return i, variable is layer.kernel
  raise AssertionError(variable)


def _groups_of(labels):
  """Returns groups as plans write them: by the first of the same label."""
  return tuple(labels.index(label) for label in labels)


labellings = st.lists(st.integers(0, 3), min_size=1, max_size=_MOST)


@given(st.integers(1, _MOST), st.integers(0, _MOST))
def test_layers_share_iff_equal_modulo_the_unit_size(count, unit):
  layers = _layers()[:count]
  if not unit or count % unit:
    with pytest.raises(errors.UsageError):
      swe_tf.SharingPlan.from_layers(layers, unit)
    return
  plan = swe_tf.SharingPlan.from_layers(layers, unit)
  assert str(plan) == f"{unit}x{count // unit}"
  expected = {
    tuple((i, kind) for i in range(count) if i % unit == first)
    for first in range(unit)
    for kind in (True, False)
  }
  ties = [tuple(map(_number, tie)) for tie in plan.ties]
  assert len(ties) == len(expected) and set(ties) == expected


@given(labellings)
def test_the_ties_of_groups(labels):
  groups = _groups_of(labels)
  whole = swe_tf.SharingPlan.from_layers(_layers()[: len(groups)])
  plan = whole.split(groups)
  ties = {tuple(map(_number, tie)) for tie in plan.ties}
  assert ties == {
    tuple((u, kind) for u, g in enumerate(groups) if g == first)
    for first in set(groups)
    for kind in (True, False)
  }
  assert {_number(v)[0] for v in plan.stems} == set(groups)
  named, _, shown = str(plan).partition(" in groups ")
  period = int(named.split("x")[0])
  regular = tuple(u % period for u in range(len(groups)))
  assert groups == (ast.literal_eval(shown) if shown else regular)


@given(labellings, st.data())
def test_groups_only_ever_split(labels, data):
  groups = _groups_of(labels)
  later = data.draw(
    st.lists(st.integers(0, 3), min_size=len(labels), max_size=len(labels))
  )
  whole = swe_tf.SharingPlan.from_layers(_layers()[: len(groups)])
  finer = _groups_of(list(zip(groups, later)))
  twice = whole.split(groups).split(finer)
  assert twice.groups == whole.split(finer).groups == finer
  other = _groups_of(later)
  ties_again = any(
    groups[u] != groups[v] and other[u] == other[v]
    for u in range(len(groups))
    for v in range(u)
  )
  if ties_again:
    with pytest.raises(errors.UsageError, match="cannot be tied again"):
      whole.split(groups).split(other)
  else:
    assert whole.split(groups).split(other).groups == other


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_only_groups_named_by_their_first_unit_are_taken(groups):
  whole = swe_tf.SharingPlan.from_layers(_layers()[: len(groups)])
  if _groups_of(groups) == tuple(groups):
    assert whole.split(tuple(groups)).groups == tuple(groups)
  else:
    with pytest.raises(errors.UsageError, match="first unit of its group"):
      whole.split(tuple(groups))
