"""The full depth of a model, from programs of a few layers.

All layers are alike, so the steps are compiled at three small depths. The first
and the last give a line to the full depth; the one between shows how straight
it is. Two depths are a third cheaper but leave the line unchecked.
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses

from rich import table as rich_table

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import messages
from swe_tf.doctor.tpu import step_kinds
from swe_tf.doctor.tpu import topologies
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry

_MEMORY = ("arguments", "outputs", "temporaries", "code")
# "peak" is the total memory.
QUANTITIES = (*_MEMORY, "peak", "flops", "bytes", "all_reduce")
_TOLERANCE = 0.05
_ROWS = {
  "peak": ("peak memory", messages.size),
  "arguments": ("arguments", messages.size),
  "temporaries": ("temporaries", messages.size),
  "flops": ("flops", lambda count: f"{count / 1e12:.4g} TFLOP"),
  "bytes": ("bytes", messages.size),
  "all_reduce": ("all-reduce", messages.size),
}
_UNKNOWN = "?"


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A quantity at the full depth, as compiled or on the line through two."""

  value: float
  # How far the depth between the two is off the line, relatively, if known.
  deviation: float | None = None

  @property
  def holds(self) -> bool:
    """Whether the depth between, if there is one, lies on the line."""
    return self.deviation is None or abs(self.deviation) <= _TOLERANCE


def num_layers(config: cfg.ExperimentConfig) -> int:
  return registry.require_encoder(config.task.as_dict()).size.num_layers


def at_depth(config: cfg.ExperimentConfig, layers: int) -> cfg.ExperimentConfig:
  """Returns an unlocked copy with another number of layers."""
  encoder = registry.require_encoder(config.task.as_dict())
  made = config.replace(task=encoder.overrides(num_layers=layers))
  sharing = getattr(made.task, "sharing", None)
  if sharing and sharing.recipe:  # Its units follow from the layers.
    made.task.sharing = config_lib.SharingConfig(recipe=sharing.recipe)
    config_lib.apply_recipe(made.task.sharing, layers)
  return made


def _kinds_by_depth(config: cfg.ExperimentConfig):
  """Returns the kinds of steps at each depth that has all of them."""
  found, count = {}, len(step_kinds.kinds(config))
  for depth in range(1, num_layers(config) + 1):
    with contextlib.suppress(errors.UsageError):
      made = at_depth(config, depth)
      if hasattr(made.task, "sharing"):
        catalog.check(made)
      found[depth] = step_kinds.kinds(made)
  return {d: kinds for d, kinds in found.items() if len(kinds) == count}


def choose(
  config: cfg.ExperimentConfig, depths: Sequence[int] = ()
) -> dict[str, list[int]]:
  """Returns the depths at which to compile each kind of step.

  They are `depths`, once checked. By default they are the first three at which
  at least 3 layers, and 3 units, are applied: with 2 the compiler finds
  shortcuts that it does not find with more. Where there are not three below the
  full depth, or few loops apply too few layers at any, it is that one.
  """
  layers, by_depth = num_layers(config), _kinds_by_depth(config)
  names = [kind.name for kind in step_kinds.kinds(config)]
  if depths:
    if len(depths) > 3 or list(depths) != sorted({*depths} & {*by_depth}):
      raise errors.UsageError(
        f"depths ({','.join(map(str, depths))}) must be one, two or three "
        "numbers of layers, in order, of those that suit the method: "
        f"{', '.join(map(str, by_depth))}."
      )
    return dict.fromkeys(names, list(depths))
  found = {}
  for i, name in enumerate(names):
    enough = []
    for depth, kinds in by_depth.items():
      _, applied, distinct = kinds[i]
      least = 3 if distinct == applied else 3 * distinct
      if applied >= max(3, least) and depth < layers:
        enough.append(depth)
    found[name] = enough[:3] if len(enough) >= 3 else [layers]
  return found


def extrapolate(
  reports: Mapping[int, Mapping[str, float]], layers: int
) -> dict[str, Estimate]:
  """Returns the quantities at a depth, from reports at up to three others.

  >>> line = {depth: {name: 10 + 5 * depth for name in QUANTITIES}
  ...         for depth in (2, 3, 4)}
  >>> extrapolate(line, 24)["flops"]
  Estimate(value=130.0, deviation=0.0)
  """
  found = {}
  for name in QUANTITIES:
    parts = _MEMORY if name == "peak" else (name,)
    at = {
      depth: sum(report[part] for part in parts)
      for depth, report in sorted(reports.items())
    }
    if layers in at:
      found[name] = Estimate(at[layers])
      continue
    low, *between, high = at
    slope = (at[high] - at[low]) / (high - low)
    deviation = None
    for middle in between:
      on_line = at[low] + slope * (middle - low)
      deviation = (at[middle] - on_line) / on_line if on_line else 0.0
    found[name] = Estimate(at[low] + slope * (layers - low), deviation)
  return found


def make_table(
  found: Mapping[str, Mapping[str, Estimate]],
  topology: topologies.Topology,
  title: str,
) -> rich_table.Table:
  """Returns the table, with a question mark for what cannot be extrapolated.

  Its last column compares the first phase of a method with the stock step.
  """
  first, second, *_ = found
  ratios = [f"{second}/{first}"] if first == step_kinds.STOCK else []
  table = rich_table.Table("each replica", *found, *ratios, title=title)

  def add_row(label, name, render, ratio=""):
    row = [found[kind][name] for kind in found]
    cells = [render(one.value) if one.holds else _UNKNOWN for one in row]
    table.add_row(label, *cells, *([ratio] if ratios else []))

  hbm = topology.generation.hbm
  add_row("fits", "peak", lambda peak: "yes" if peak <= hbm else "no")
  for name, (label, render) in _ROWS.items():
    one, other = found[first][name], found[second][name]
    # A small model may need no temporaries outside the chip's caches.
    known = one.value and one.holds and other.holds
    add_row(
      label, name, render, f"{other.value / one.value:.4f}" if known else ""
    )
  return table


def how_far_from_a_line(found, depths: Mapping[str, Sequence[int]]) -> str:
  if any(len(chosen) == 2 for chosen in depths.values()):
    return "what is extrapolated from two depths is unchecked"
  deviations = [
    (abs(estimates[name].deviation), f"{label} of the {kind} step")
    for kind, estimates in found.items()
    for name, (label, _) in _ROWS.items()
    if estimates[name].deviation is not None
  ]
  if not deviations:
    return "compiled at full depth: nothing is extrapolated"
  worst, name = max(deviations)
  text = f"at the middle depth the line is off by {worst:.2%} at most ({name})"
  if worst > _TOLERANCE:
    text += (
      f"; what is off by more is shown as {_UNKNOWN}: choose larger depths"
    )
  return text
