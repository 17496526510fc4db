"""Runs to groups that may be averaged, and groups to comparisons.

Runs are averaged only if nothing but their seeds differs. Differences to the
baseline are taken seed by seed. Imports no TensorFlow.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
import statistics
from typing import Any
from typing import Optional

from swe_tf.report import facts as facts_lib
from swe_tf.report import runs as runs_lib


@dataclasses.dataclass(frozen=True)
class Statistic:
  """A mean over seeds.

  Attributes:
    mean: The mean.
    std: The sample standard deviation; None for a single value.
    n: The number of values.
  """

  mean: float
  std: float | None
  n: int


def summarize(values: Iterable[float]) -> Statistic | None:
  """Returns mean and deviation; None if there is no value.

  >>> summarize([1.0, 3.0])
  Statistic(mean=2.0, std=1.4142135623730951, n=2)
  """
  values = list(values)
  if not values:
    return None
  return Statistic(
    statistics.fmean(values),
    statistics.stdev(values) if len(values) > 1 else None,
    len(values),
  )


@dataclasses.dataclass(frozen=True)
class Group:
  """Runs that differ in their seeds only.

  Attributes:
    facts: The config, that of the first run.
    runs: Those that finished.
    left_out: Those that do not count; see `Run.status`.
  """

  facts: facts_lib.Facts
  runs: Sequence[runs_lib.Run]
  left_out: Sequence[runs_lib.Run]

  def values(self, name: str) -> dict[tuple, float]:
    """Returns the scores of a name that exist, by seed."""
    return {
      run.facts.seed: run.scores[name]
      for run in self.runs
      if name in run.scores
    }

  def statistic(self, name: str) -> Statistic | None:
    return summarize(self.values(name).values())

  def difference(
    self, baseline: Optional["Group"], name: str
  ) -> Statistic | None:
    """Returns the difference to the baseline, over the seeds of both."""
    if baseline is None or baseline is self:
      return None
    theirs = baseline.values(name)
    return summarize(
      value - theirs[seed]
      for seed, value in self.values(name).items()
      if seed in theirs
    )


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The groups of one setting.

  Attributes:
    title: The setting in words.
    groups: One group for each method: that of its best learning rate.
    rates: All groups, by the title of the method.
  """

  title: str
  groups: Mapping[str, Group]
  rates: Mapping[str, Sequence[Group]]

  @property
  def baseline(self) -> Group | None:
    return next(
      (
        group
        for group in self.groups.values()
        if group.facts.method == facts_lib.BASELINE
      ),
      None,
    )

  @property
  def facts(self) -> facts_lib.Facts:
    return next(iter(self.groups.values())).facts

  @property
  def runs(self) -> list[runs_lib.Run]:
    return [
      run
      for groups in self.rates.values()
      for group in groups
      for run in group.runs
    ]

  @property
  def entropies(self) -> list[float]:
    """The entropies of single tokens that the studies of the runs state."""
    return sorted({run.entropy for run in self.runs if run.entropy is not None})


def compare(found: Sequence[runs_lib.Run]) -> list[Comparison]:
  """Sorts runs into comparisons, the largest first."""
  settings = _partition(found, lambda run: run.facts.setting)
  titles = _titles(
    [runs[0].facts for runs in settings],
    setting_title,
    lambda facts: facts.setting,
  )
  comparisons = []
  for title, members in zip(titles, settings):
    variants = _partition(members, lambda run: run.facts.variant)
    names = _titles(
      [runs[0].facts for runs in variants],
      method_title,
      lambda facts: facts.variant,
    )
    rates = {}
    for name, runs in sorted(
      zip(names, variants), key=lambda pair: _order(pair[1][0].facts)
    ):
      by_rate = _partition(runs, lambda run: run.facts.learning_rate)
      rates[name] = sorted(
        map(_group, by_rate), key=lambda g: g.facts.learning_rate or 0.0
      )
    comparisons.append(
      Comparison(
        title, {name: _best(groups) for name, groups in rates.items()}, rates
      )
    )
  return sorted(comparisons, key=lambda each: -len(each.groups))


def setting_title(facts: facts_lib.Facts) -> str:
  """Returns model, budget and data in words."""
  parts = pathlib.PurePath(facts.data.split(",")[0]).parts[-2:]
  return (
    f"{facts.num_layers} layers of width {facts.width}, "
    f"{facts.train_steps:,} steps of {facts.batch_size} x "
    f"{facts.seq_length} tokens of {'/'.join(parts) or 'unnamed data'}"
  )


def method_name(facts: facts_lib.Facts) -> str:
  """Returns the method with its rule, if that is not the paper's."""
  rule = "" if facts.rule == facts_lib.FIXED else f" {facts.rule}"
  return facts.method + rule


def method_title(facts: facts_lib.Facts) -> str:
  """Returns the method with its unit and untie step, for a legend."""
  title = method_name(facts)
  if facts.method == facts_lib.SWE:
    title += f" {facts.unit}"
    if facts.untie_step is not None:
      title += f", untied after {facts.untie_step:,}"
  elif facts.method != facts_lib.BASELINE and (facts.unit_size or 1) > 1:
    title += f" {facts.unit}"
  return title


def _group(members: Sequence[runs_lib.Run]) -> Group:
  counted = [run for run in members if run.status == runs_lib.FINISHED]
  return Group(
    members[0].facts, counted, [run for run in members if run not in counted]
  )


def _best(groups: Sequence[Group]) -> Group:
  """Returns the rate with the least loss, of those with the most seeds.

  The mean of the one seed that happened to survive says little.
  """

  def rank(group):
    loss = group.statistic(runs_lib.LOSS)
    return (-len(group.runs), loss.mean if loss else 0.0)

  return min(groups, key=rank)


def _order(facts: facts_lib.Facts) -> tuple:
  """The baseline first, then by method, unit and untie step."""
  names = (facts_lib.BASELINE, facts_lib.SWE, facts_lib.ALBERT)
  rank = names.index(facts.method) if facts.method in names else len(names)
  return (rank, method_name(facts), facts.unit_size or 0, facts.untie_step or 0)


def _partition(
  items: Iterable[runs_lib.Run], key: Callable[[runs_lib.Run], Any]
) -> list[list[runs_lib.Run]]:
  parts: dict[str, list[runs_lib.Run]] = {}
  for item in items:
    value = key(item)
    if isinstance(value, Mapping):
      value = sorted(value.items())
    parts.setdefault(repr(value), []).append(item)
  return list(parts.values())


def _titles(facts, title_of, leaves_of) -> list[str]:
  """Returns titles; those that would be the same say where they differ."""
  titles = [title_of(each) for each in facts]
  distinct = []
  for each, title in zip(facts, titles):
    same = [
      leaves_of(other) for other, name in zip(facts, titles) if name == title
    ]
    names = {
      name
      for leaves in same
      for name in leaves
      if len({other.get(name) for other in same}) > 1
    }
    extra = [
      f"{name}={leaves_of(each).get(name, 'unset')}" for name in sorted(names)
    ]
    distinct.append("; ".join([title, *extra]))
  return distinct
