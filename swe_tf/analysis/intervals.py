"""A mean over seeds with Student's interval. Imports no TensorFlow."""

from collections.abc import Iterable
import dataclasses
import math
import statistics

_LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
  """A mean over seeds with its 95% interval.

  Attributes:
    mean: The mean.
    low: The lower end; minus infinity for a single value.
    high: The upper end; infinity for a single value.
    n: The number of values.
  """

  mean: float
  low: float
  high: float
  n: int

  def __str__(self) -> str:
    if self.n < 2:
      return f"{self.mean:.3f} (one seed)"
    return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def interval(values: Iterable[float | None]) -> Interval | None:
  """Returns the mean and interval; None without values or if one is None.

  >>> print(interval([0.8, 0.9, 0.85]))
  0.850 (0.726 to 0.974)
  """
  found = list(values)
  numbers = [value for value in found if value is not None]
  if not found or len(numbers) < len(found):
    return None
  mean = statistics.fmean(numbers)
  if len(numbers) < 2:
    return Interval(mean, -math.inf, math.inf, 1)
  half = quantile(len(numbers)) * statistics.stdev(numbers)
  half /= math.sqrt(len(numbers))
  return Interval(mean, mean - half, mean + half, len(numbers))


def quantile(n: int) -> float:
  """Returns half the interval of `n` values, in standard errors."""
  from scipy import stats

  return float(stats.t.ppf(0.5 + _LEVEL / 2, n - 1))
