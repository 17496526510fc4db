"""The verdict that opens a report: what the runs show, in a sentence.

A method is ahead of the baseline, or behind it, if the 95% interval of the
difference of their final validation losses, taken seed by seed, excludes 0. One
seed decides nothing. Imports no TensorFlow.
"""

import collections
from collections.abc import Iterable, Sequence
import dataclasses

from swe_tf.analysis import comparisons
from swe_tf.analysis import found_runs
from swe_tf.analysis import statistics
from swe_tf.methods import catalog

AHEAD, BEHIND = "ahead", "behind"
TOO_CLOSE, ONE_SEED = "too close to tell", "undecided by one seed"


@dataclasses.dataclass(frozen=True)
class Difference:
  """How far a method ends from the baseline.

  Attributes:
    method: Its title in the comparison.
    values: Its final validation loss minus the baseline's, one for each seed
      that both have; at least one.
  """

  method: str
  values: tuple[float, ...]

  @property
  def interval(self) -> statistics.Interval:
    found = statistics.mean(self.values)
    assert found is not None
    return found

  @property
  def word(self) -> str:
    """One of `AHEAD`, `BEHIND`, `TOO_CLOSE` and `ONE_SEED`."""
    if len(self.values) < 2:
      return ONE_SEED
    if self.interval.high < 0:
      return AHEAD
    return BEHIND if self.interval.low > 0 else TOO_CLOSE

  def __str__(self) -> str:
    """Returns the difference, with its interval if there are several seeds."""
    found = self.interval
    if len(self.values) < 2:
      return f"{found.mean:+.4f} nats"
    return (
      f"{found.mean:+.4f} nats (95% interval {found.low:+.4f} to "
      f"{found.high:+.4f}, {found.n} seeds)"
    )


def differences(comparison: comparisons.Comparison) -> list[Difference]:
  """Returns the difference of each method that can be compared."""
  found = []
  for name, group in comparison.groups.items():
    values = group.differences(comparison.baseline, found_runs.LOSS)
    if values:
      found.append(Difference(name, tuple(values)))
  return found


def say(compared: Sequence[comparisons.Comparison]) -> list[str]:
  """Returns the verdict, then a line for each setting if there are several.

  Args:
    compared: All settings.
  """
  judged = []
  for comparison in compared:
    found = differences(comparison)
    if found:
      judged.append((comparison, _judged(comparison, found), found))
  if not judged:
    return [_why_nothing(compared)]
  lines = [_sentences(*each) for each in judged]
  if len(judged) == 1:
    return lines
  counts = collections.Counter(each.word for _, each, _ in judged)
  return [
    f"Against the baseline, in {len(judged)} settings: "
    + ", ".join(
      f"{word} in {counts[word]}"
      for word in (AHEAD, BEHIND, TOO_CLOSE, ONE_SEED)
      if counts[word]
    )
    + ".",
    *(
      f"{comparison.title}: {line}"
      for (comparison, _, _), line in zip(judged, lines)
    ),
  ]


def _judged(
  comparison: comparisons.Comparison, found: Sequence[Difference]
) -> Difference:
  """Returns the method that the verdict is about.

  That is Algorithm 1 as the tables show it, if it was run; otherwise a variant
  of it; otherwise any method. Of several, it is the one that ended lowest.
  """
  sharing = [
    each
    for each in found
    if comparison.groups[each.method].config.method == catalog.SWE
  ]
  papers = [
    each
    for each in sharing
    if each.method in comparison.main_groups
    and comparison.groups[each.method].config.rule == catalog.FIXED
  ]
  return _lowest(papers or sharing or found)


def _lowest(found: Iterable[Difference]) -> Difference:
  return min(found, key=lambda each: each.interval.mean)


def _sentences(
  comparison: comparisons.Comparison,
  judged: Difference,
  found: Sequence[Difference],
) -> str:
  """Returns the verdict on one setting, with its caveats."""
  name = _in_words(judged.method)
  minus = f"its final validation loss minus the baseline's is {judged}."
  sentences = [
    {
      AHEAD: f"{name} is ahead of the baseline: {minus}",
      BEHIND: f"{name} is behind the baseline: {minus}",
      TOO_CLOSE: f"{name} and the baseline are too close to tell apart: "
      f"{minus}",
      ONE_SEED: "One seed cannot tell a difference from noise: the final "
      f"validation loss of {name} minus the baseline's is {judged}.",
    }[judged.word]
  ]
  lowest = _lowest(found)
  if lowest.interval.mean < judged.interval.mean:
    sentences.append(
      f"The lowest of {len(found)} methods is {_in_words(lowest.method)}: "
      f"{lowest}."
    )
  tried = [
    len(comparison.rates[name])
    for name in (judged.method, *comparison.baselines)
  ]
  if tried[0] != tried[1]:
    sentences.append(
      f"It was tried with {_rates(tried[0])}, the baseline with {tried[1]}: "
      "not a fair comparison."
    )
  return " ".join(sentences)


def _in_words(title: str) -> str:
  """Returns the title of a method in a form that fits into a sentence.

  >>> _in_words("swe 1x24, untied after 150")
  'swe 1x24 (untied after 150)'
  """
  name, _, rest = title.partition(", ")
  return f"{name} ({rest})" if rest else name


def _rates(count: int) -> str:
  return f"{count} learning {'rate' if count == 1 else 'rates'}"


def _why_nothing(compared: Sequence[comparisons.Comparison]) -> str:
  """Returns a sentence that explains why nothing can be compared."""
  start = "There is nothing to compare"
  finished = [each for each in compared if each.runs]
  if not finished:
    return f"{start}: no pre-training run has finished."
  measured = [
    {name for name, group in each.groups.items() if group.runs}
    for each in finished
  ]
  with_baseline = [
    names
    for names, each in zip(measured, finished)
    if names & {*each.baselines}
  ]
  if not with_baseline:
    return f"{start}: no baseline has finished."
  if max(map(len, with_baseline)) == 1:
    return f"{start}: no other method has finished beside the baseline."
  return f"{start}: no method has finished with the same seed as the baseline."
