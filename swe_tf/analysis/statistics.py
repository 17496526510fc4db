"""Means over seeds, paired differences, and the word for each.

The only place where a measured number gets its interval and its verdict. All
intervals are 95% and Student's, exact for normally distributed values at any
number of seeds. (A percentile bootstrap of 3 seeds would cover about 68%.)
`tests/analysis/test_statistics.py` simulates the coverage. Imports no
TensorFlow.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import math
import statistics

_LEVEL = 0.95
PAYS, COSTS, CANNOT_TELL = "pays", "costs", "cannot tell"
ONE_SEED = f"{CANNOT_TELL} (one seed)"
TOO_SHORT = (
  "These runs are too short: they end at or above the entropy of single "
  "tokens, so their differences say nothing."
)
UNEQUAL = f"{CANNOT_TELL} (unequal FLOPs)"
# Closer than this, two arms cost the same.
SAME_COST = 0.01


@dataclasses.dataclass(frozen=True)
class Interval:
  """An estimate over `n` seeds with its 95% interval, infinite for one seed."""

  mean: float
  low: float
  high: float
  n: int

  def __str__(self) -> str:
    if self.n < 2:
      return f"{self.mean:.3f} (one seed)"
    return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

  def word(self, neutral: float = 0.0) -> str:
    """Returns the verdict on a quantity of which less is better.

    >>> Interval(-0.03, -0.05, -0.01, 3).word()
    'pays'
    >>> Interval(0.9, 0.7, 1.1, 3).word(neutral=1.0)
    'cannot tell'

    `neutral` is neither a gain nor a loss: 0 for a difference, 1 for a ratio.
    """
    # A baseline that diverged shows nothing: it needs a lower rate.
    if -math.inf < self.high < neutral:
      return PAYS
    return COSTS if self.low > neutral else CANNOT_TELL


def mean(values: Iterable[float | None]) -> Interval | None:
  """Returns the mean and its interval; None without values or if one is None.

  With the loss of a run that diverged, infinity, the interval is only that.

  >>> print(mean([0.8, 0.9, 0.85]))
  0.850 (0.726 to 0.974)
  """
  found = list(values)
  numbers = [value for value in found if value is not None]
  if not found or len(numbers) < len(found):
    return None
  n, center = len(numbers), sum(numbers) / len(numbers)
  if not math.isfinite(center):  # `fmean` refuses infinities of both signs.
    return Interval(center, center, center, n)
  center, half = statistics.fmean(numbers), math.inf
  if n > 1:
    half = quantile(n) * statistics.stdev(numbers) / math.sqrt(n)
  return Interval(center, center - half, center + half, n)


def paired(
  values: Mapping[int, float], others: Mapping[int, float]
) -> Interval | None:
  """Returns the mean difference, seed by seed; None without a common seed.

  >>> print(paired({1: 2.0, 2: 2.2, 3: 9.0}, {1: 1.0, 2: 1.0}))
  1.100 (-0.171 to 2.371)
  """
  return mean(values[s] - others[s] for s in sorted(values) if s in others)


def verdict(
  difference: Interval | None,
  flops_ratio: float | None = None,
  equal_loss: Interval | None = None,
) -> str | None:
  """Returns the verdict on an arm; None if it cannot be compared.

  `difference` is its final loss minus the baseline's, `flops_ratio` its FLOPs
  divided by the baseline's, `equal_loss` by those that had taken the baseline
  to the same loss.
  """
  if difference is None:
    return None
  if difference.n < 2:
    return ONE_SEED
  found = difference.word()
  if flops_ratio is None or abs(flops_ratio - 1) < SAME_COST:
    return found
  if found == (PAYS if flops_ratio < 1 else COSTS):
    return found
  # In the middle of its schedule a baseline needs more FLOPs for a loss than at
  # its end. If it needs fewer all the same, the arm costs; otherwise only a
  # baseline that is scheduled for as many FLOPs would tell.
  return COSTS if equal_loss and equal_loss.low > 1 else UNEQUAL


def too_short(entropy: float | None, *losses: Interval | None) -> bool:
  """Whether losses show only that some tokens are more frequent than others.

  >>> too_short(3.0, Interval(3.1, 3.0, 3.2, 3), Interval(2.9, 2.8, 3.0, 3))
  False
  """
  if entropy is None:
    return False
  return all(loss is not None and loss.mean >= entropy for loss in losses)


def quantile(n: int) -> float:
  """Returns half the interval of `n` values, in standard errors."""
  from scipy import stats

  return float(stats.t.ppf(0.5 + _LEVEL / 2, n - 1))
