"""Hours and dollars of a number of FLOPs on TPUs. Imports no TensorFlow."""

import dataclasses
from typing import NamedTuple


class Chip(NamedTuple):
  """A TPU by Google's documentation; the price is the list price in 2025."""

  flops: float  # The peak in bfloat16, per second.
  price: float  # Per chip and hour, on demand, in the cheapest US region.


CHIPS = {
  "v4": Chip(275e12, 3.22),
  "v5e": Chip(197e12, 1.20),
  "v5p": Chip(459e12, 4.20),
  "v6e": Chip(918e12, 2.70),
}
# Of the peak; published runs of BERT on TPUs are between 0.3 and 0.6.
UTILIZATION = 0.4


@dataclasses.dataclass(frozen=True)
class Machine:
  """Some chips, how well they are used, and what one costs in an hour."""

  name: str
  chips: int
  utilization: float = UTILIZATION
  asked: float | None = None  # By default the list price.

  @property
  def price(self) -> float:
    return CHIPS[self.name].price if self.asked is None else self.asked

  def hours(self, flops: float) -> float:
    """Returns how long the FLOPs take.

    >>> round(Machine("v5e", 8, 0.5).hours(197e12 * 4 * 3600), 3)
    1.0
    """
    speed = CHIPS[self.name].flops * self.chips * self.utilization
    return flops / speed / 3600

  def dollars(self, flops: float) -> float:
    return self.hours(flops) * self.chips * self.price

  def __str__(self):
    return (
      f"{self.chips} {self.name} at {self.utilization:.0%} of their "
      f"{CHIPS[self.name].flops / 1e12:.0f} TFLOP/s, "
      f"${self.price:.2f} per chip and hour"
      + " (list price of 2025)"
      * (self.asked is None)
    )
