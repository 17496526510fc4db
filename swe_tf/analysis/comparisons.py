"""All methods of one setting, side by side. Imports no TensorFlow."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import pathlib
from typing import Any

from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import run_config
from swe_tf.methods import catalog


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The groups of one setting.

  Attributes:
    title: The setting in words.
    groups: The group of each method's best learning rate, by title.
    rates: All groups, by the title of the method.
  """

  title: str
  groups: Mapping[str, groups_lib.Group]
  rates: Mapping[str, Sequence[groups_lib.Group]]

  def select(
    self, is_wanted: Callable[[run_config.RunConfig], bool]
  ) -> dict[str, groups_lib.Group]:
    """Returns the groups whose config is wanted, by title."""
    return {
      name: group
      for name, group in self.groups.items()
      if is_wanted(group.config)
    }

  @property
  def main_groups(self) -> dict[str, groups_lib.Group]:
    """The methods, with SWE only once if possible.

    Algorithm 1 is represented by full sharing with the paper's choice of tau,
    if that was run. Its other units and untie steps have tables of their own.
    """
    swe = self.select(
      lambda config: (
        config.method == catalog.SWE and config.rule == catalog.FIXED
      )
    )
    chosen = [
      name
      for name, group in swe.items()
      if group.config.unit_size == 1 and group.config.has_papers_tau
    ]
    return {
      name: group
      for name, group in self.groups.items()
      if not chosen or name in chosen or name not in swe
    }

  @property
  def baselines(self) -> dict[str, groups_lib.Group]:
    return self.select(lambda config: config.method == catalog.BASELINE)

  @property
  def baseline(self) -> groups_lib.Group | None:
    return next(iter(self.baselines.values()), None)

  @property
  def config(self) -> run_config.RunConfig:
    return next(iter(self.groups.values())).config

  @property
  def runs(self) -> list[found_runs.Run]:
    return [
      run
      for groups in self.rates.values()
      for group in groups
      for run in group.runs
    ]

  @property
  def entropies(self) -> list[float]:
    """The entropies of single tokens that the runs' studies recorded."""
    return sorted({run.entropy for run in self.runs if run.entropy is not None})


def compare(found: Sequence[found_runs.Run]) -> list[Comparison]:
  """Sorts runs into comparisons, the largest first."""
  settings = _partition(found, lambda config: config.setting, _setting_title)
  compared = []
  for title, members in settings.items():
    variants = _partition(members, lambda config: config.variant, method_title)
    rates = {
      name: _groups(runs)
      for name, runs in sorted(
        variants.items(), key=lambda item: _order(item[1][0].config)
      )
    }
    best = {name: min(groups, key=_rank) for name, groups in rates.items()}
    compared.append(Comparison(title, best, rates))
  return sorted(compared, key=lambda each: -len(each.groups))


def method_title(config: run_config.RunConfig) -> str:
  """Returns the method with its unit and untie step, for a legend."""
  title = config.label
  if config.method == catalog.SWE:
    title += f" {config.unit}"
    if config.untie_step is not None:
      title += f", untied after {config.untie_step:,}"
  elif config.method != catalog.BASELINE and (config.unit_size or 1) > 1:
    title += f" {config.unit}"
  return title


def _setting_title(config: run_config.RunConfig) -> str:
  """Returns the model, the budget and the data in words."""
  parts = pathlib.PurePath(config.data.split(",")[0]).parts[-2:]
  return (
    f"{config.num_layers} layers of width {config.width}, "
    f"{config.train_steps:,} steps of {config.batch_size} x "
    f"{config.seq_length} tokens of {'/'.join(parts) or 'unnamed data'}"
  )


def _groups(runs: Iterable[found_runs.Run]) -> list[groups_lib.Group]:
  """Returns a group for each learning rate, the lowest first."""
  by_rate: dict[float | None, list[found_runs.Run]] = {}
  for run in runs:
    by_rate.setdefault(run.config.learning_rate, []).append(run)
  return [
    groups_lib.Group(
      by_rate[rate][0].config,
      [run for run in by_rate[rate] if run.status == found_runs.FINISHED],
      [run for run in by_rate[rate] if run.status != found_runs.FINISHED],
    )
    for rate in sorted(by_rate, key=lambda rate: rate or 0.0)
  ]


def _rank(group: groups_lib.Group) -> tuple[Any, ...]:
  """Sorts the rates with the most seeds first, by loss.

  The mean of the one seed that happened to survive says little.
  """
  loss = group.statistic(found_runs.LOSS)
  return -len(group.runs), loss.mean if loss else 0.0


def _order(config: run_config.RunConfig) -> tuple[Any, ...]:
  """Sorts the baseline first, then by method, unit and untie step."""
  names = (catalog.BASELINE, catalog.SWE, catalog.ALBERT)
  return (
    names.index(config.method) if config.method in names else len(names),
    config.label,
    config.unit_size or 0,
    config.untie_step or 0,
    len(config.variant),  # The baseline is the one that gin did not change.
  )


def _partition(
  found: Iterable[found_runs.Run],
  leaves_of: Callable[[run_config.RunConfig], Mapping[str, str]],
  title_of: Callable[[run_config.RunConfig], str],
) -> dict[str, list[found_runs.Run]]:
  """Groups the runs that have the same leaves, by title.

  Where two titles would be the same, the leaves that differ are added.
  """
  parts: dict[str, list[found_runs.Run]] = {}
  for run in found:
    parts.setdefault(repr(leaves_of(run.config)), []).append(run)
  same: dict[str, list[Mapping[str, Any]]] = {}
  for runs in parts.values():
    config = runs[0].config
    same.setdefault(title_of(config), []).append(leaves_of(config))
  titled = {}
  for runs in parts.values():
    title, leaves = title_of(runs[0].config), leaves_of(runs[0].config)
    differing = [
      f"{name}={leaves.get(name, 'unset')}"
      for name in sorted({name for each in same[title] for name in each})
      if len({each.get(name) for each in same[title]}) > 1
    ]
    titled["; ".join([title, *differing])] = runs
  return titled
