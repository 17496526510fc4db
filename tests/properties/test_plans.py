"""Plans and groups: every variable in one tie, and apart for good."""

import ast
import functools

from hypothesis import given
from hypothesis import strategies as st
import pytest
import tf_keras

import swe_tf
from swe_tf import errors

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
