"""The full depth of a model, from programs of a few layers.

Compiling all layers takes long, and all layers are alike, so the steps are
compiled at three small depths. The first and the last give a line, which is
extrapolated to the full depth; the one between shows how straight the line is.
Two depths are a third cheaper but leave the line unchecked.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.modeling import registry

_MEMORY = ("arguments", "outputs", "temporaries", "code")
# "peak" is the total memory.
QUANTITIES = (*_MEMORY, "peak", "flops", "bytes", "all_reduce")
_TOLERANCE = 0.05


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A quantity at the full depth.

  Attributes:
    value: What the compiler reports, or what the line through two depths gives.
    deviation: How far the depth between them is off the line, relatively; None
      if the value was compiled, or there are only two depths.
  """

  value: float
  deviation: float | None = None

  @property
  def holds(self) -> bool:
    """Whether the depth between, if there is one, lies on the line."""
    return self.deviation is None or abs(self.deviation) <= _TOLERANCE


def num_layers(config: cfg.ExperimentConfig) -> int:
  """Returns the full depth."""
  return registry.require_encoder(config.task.as_dict()).size.num_layers


def at_depth(config: cfg.ExperimentConfig, layers: int) -> cfg.ExperimentConfig:
  """Returns an unlocked copy with another number of layers."""
  encoder = registry.require_encoder(config.task.as_dict())
  return config.replace(task=encoder.overrides(num_layers=layers))


def choose(config: cfg.ExperimentConfig) -> list[int]:
  """Returns the depths to compile: 3, 4 and 5 units, or all layers if fewer.

  With 2 units the compiler finds shortcuts that it does not find with more.
  """
  unit, layers = config.task.sharing.unit_size, num_layers(config)
  return [3 * unit, 4 * unit, 5 * unit] if layers > 5 * unit else [layers]


def check(config: cfg.ExperimentConfig, depths: Sequence[int]) -> None:
  """Raises `UsageError` unless the depths suit the experiment."""
  unit = config.task.sharing.unit_size
  if (
    len(depths) not in (1, 2, 3)
    or any(depth < 1 or depth % unit for depth in depths)
    or list(depths) != sorted(set(depths))
  ):
    raise errors.UsageError(
      f"depths ({','.join(map(str, depths))}) must be one, two or three "
      f"numbers of layers, in order, multiples of unit_size ({unit})."
    )


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
