"""TPUs: what a step can be compiled for, and what it takes and costs there.

Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import math
import re
from typing import NamedTuple

from swe_tf import errors

_GIB = 2**30


class Generation(NamedTuple):
  """A generation of TPUs, by Google's documentation; the price is of 2025."""

  replicas_per_chip: int  # 2 where TensorFlow sees each core as a device.
  hbm: int  # Bytes per replica; the compiler keeps a little for itself.
  dimensions: int  # Of its topologies.
  flops: float = 0.0  # The peak of a chip in bfloat16, per second.
  price: float = 0.0  # Per chip and hour, on demand, in the cheapest US region.
  options: Mapping[str, str] = {}  # What the compiler needs besides the name.


_MEGACORE = {"chip_config_name": "megacore"}
GENERATIONS = {
  "v2": Generation(2, 8 * _GIB, 2),
  "v3": Generation(2, 16 * _GIB, 2),
  "v4": Generation(1, 32 * _GIB, 3, 275e12, 3.22, _MEGACORE),
  "v5e": Generation(1, 16 * _GIB, 2, 197e12, 1.20),
  "v5p": Generation(1, 95 * _GIB, 3, 459e12, 4.20),
  "v6e": Generation(1, 32 * _GIB, 2, 918e12, 2.70),
}
PRICED = tuple(name for name, each in GENERATIONS.items() if each.price)
# Of the peak; published runs of BERT on TPUs are between 0.3 and 0.6.
UTILIZATION = 0.4


class Topology(NamedTuple):
  """A slice; `name` is the compiler's name for it, such as `v5e:2x2`."""

  name: str
  generation: Generation
  replicas: int


def parse(name: str) -> Topology:
  """Returns the named topology, or raises `UsageError`.

  >>> parse("v5e:4x4").replicas
  16
  """
  match = re.fullmatch(r"(v\w+):(\d+(?:x\d+)*)", name)
  generation = GENERATIONS.get(match[1]) if match else None
  sides = [int(side) for side in match[2].split("x")] if match else []
  if generation is None or len(sides) != generation.dimensions:
    raise errors.UsageError(
      f"topology ({name}) is not known; use one such as v2:2x2, v3:2x2, "
      "v4:2x2x1, v4:2x2x4, v5e:2x2, v5e:4x4, v5p:2x2x1 or v6e:2x2."
    )
  replicas = math.prod(sides) * generation.replicas_per_chip
  return Topology(name, generation, replicas)


@dataclasses.dataclass(frozen=True)
class Machine:
  """Some chips, how well they are used, and what one costs in an hour."""

  name: str
  chips: int
  utilization: float = UTILIZATION
  asked: float | None = None  # By default the list price.

  @property
  def price(self) -> float:
    return GENERATIONS[self.name].price if self.asked is None else self.asked

  def hours(self, flops: float) -> float:
    """Returns how long the FLOPs take.

    >>> round(Machine("v5e", 8, 0.5).hours(197e12 * 4 * 3600), 3)
    1.0
    """
    speed = GENERATIONS[self.name].flops * self.chips * self.utilization
    return flops / speed / 3600

  def dollars(self, flops: float) -> float:
    return self.hours(flops) * self.chips * self.price

  def __str__(self):
    return (
      f"{self.chips} {self.name} at {self.utilization:.0%} of their "
      f"{GENERATIONS[self.name].flops / 1e12:.0f} TFLOP/s, "
      f"${self.price:.2f} per chip and hour"
      + " (list price of 2025)"
      * (self.asked is None)
    )
