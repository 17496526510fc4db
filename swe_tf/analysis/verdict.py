"""What the runs show, in a word per arm and a sentence per setting.

The words are those of `statistics`.
"""

import collections
from collections.abc import Iterable
from typing import Any

import pandas as pd

from swe_tf.analysis import statistics

ONE_SEED = f"{statistics.CANNOT_TELL} (one seed)"
UNEQUAL = f"{statistics.CANNOT_TELL} (unequal FLOPs)"
# Closer than this, two arms cost the same.
_SAME_COST = 0.01


def word(
  difference: statistics.Interval | None,
  flops_ratio: float | None = None,
  equal_loss: statistics.Interval | None = None,
) -> str | None:
  """Returns the verdict on an arm; None if it cannot be compared.

  Args:
    difference: Its final validation loss minus the baseline's.
    flops_ratio: Its FLOPs divided by the baseline's, if known.
    equal_loss: Its FLOPs divided by those that the baseline spends until it has
      the arm's final loss, in the middle of its schedule.
  """
  if difference is None:
    return None
  if difference.n < 2:
    return ONE_SEED
  found = difference.word()
  if flops_ratio is None or abs(flops_ratio - 1) < _SAME_COST:
    return found
  if found == (statistics.PAYS if flops_ratio < 1 else statistics.COSTS):
    return found
  # In the middle of its schedule the baseline needs more FLOPs for a loss than
  # if it were scheduled to end there. That flatters the arm, so it can show
  # that an arm costs, but not that it pays.
  if equal_loss is not None and equal_loss.word(1.0) == statistics.COSTS:
    return statistics.COSTS
  return UNEQUAL


def say(arms: pd.DataFrame) -> list[str]:
  """Returns the verdict, then a line for each setting if there are several.

  Args:
    arms: What `comparisons.summarize` returns.
  """
  lines, words = {}, []
  for setting, found in _by_setting(arms):
    compared = found[found.loss_difference.notna()]
    if len(compared):
      judged = _judged(compared)
      lines[setting] = _sentences(judged, compared, found)
      words.append(judged.verdict)
  if not lines:
    return [_why_nothing(arms)]
  if len(lines) == 1:
    return list(lines.values())
  counts = ", ".join(
    f"{word} in {count}" for word, count in collections.Counter(words).items()
  )
  return [
    f"Against the baseline, in {len(lines)} settings: {counts}.",
    *(f"{setting}: {line}" for setting, line in lines.items()),
  ]


def _by_setting(arms: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
  return arms.groupby("setting", sort=False) if len(arms) else ()


def _judged(compared: pd.DataFrame) -> Any:
  """Returns the arm that the verdict is about.

  That is Algorithm 1 with full sharing and the paper's tau, if it was run;
  otherwise Algorithm 1; otherwise a variant of it; otherwise any method. Of
  several, it is the one that ended lowest.
  """
  swe = compared[compared.is_swe]
  fixed = swe[swe.is_fixed]
  papers = fixed[fixed.is_papers & fixed.unit.str.startswith("1x")]
  return _lowest(
    next(each for each in (papers, fixed, swe, compared) if len(each))
  )


def _lowest(arms: pd.DataFrame) -> Any:
  return min(arms.itertuples(), key=lambda arm: arm.loss_difference.mean)


def _sentences(judged: Any, compared: pd.DataFrame, found: pd.DataFrame) -> str:
  """Returns the verdict on one setting, with its caveats."""
  name, minus = _in_words(judged.arm), _difference(judged)
  if judged.verdict in (statistics.PAYS, statistics.COSTS):
    start = f"{name} {judged.verdict}"
  else:
    start = f"{judged.verdict.capitalize()} whether {name} pays"
  start += f": its final validation loss minus the baseline's is {minus}"
  ratio = getattr(judged, "flops_ratio", None)
  if ratio is not None and abs(ratio - 1) >= _SAME_COST:
    start += f", with {ratio:.2f} of its FLOPs"
  sentences = [f"{start}."]
  if judged.verdict == UNEQUAL:
    sentences.append("A baseline scheduled for as many FLOPs would tell.")
  lowest = _lowest(compared)
  if lowest.loss_difference.mean < judged.loss_difference.mean:
    sentences.append(
      f"The lowest of {len(compared)} methods is {_in_words(lowest.arm)}: "
      f"{_difference(lowest)}."
    )
  baseline = next(arm for arm in found.itertuples() if arm.is_baseline)
  if judged.rates_tried != baseline.rates_tried:
    rates = "rate" if judged.rates_tried == 1 else "rates"
    sentences.append(
      f"It was tried with {judged.rates_tried} learning {rates}, the baseline "
      f"with {baseline.rates_tried}: not a fair comparison."
    )
  return " ".join(sentences)


def _difference(arm: Any) -> str:
  found = arm.loss_difference
  text = f"{found.mean:+.4f} nats per token"
  if found.n < 2:
    return text
  return (
    f"{text} (95% interval {found.low:+.4f} to {found.high:+.4f}, {found.n} "
    "seeds)"
  )


def _in_words(arm: str) -> str:
  """Returns the title of an arm in a form that fits into a sentence.

  >>> _in_words("swe 1x24, untied after 150")
  'swe 1x24 (untied after 150)'
  """
  name, _, rest = arm.partition(", ")
  return f"{name} ({rest})" if rest else name


def _why_nothing(arms: pd.DataFrame) -> str:
  """Returns a sentence that explains why nothing can be compared."""
  start = "There is nothing to compare"
  if not len(arms) or not any(arms.seeds):
    return f"{start}: no pre-training run has finished."
  measured = arms[arms.seeds > 0]
  with_baseline = measured[measured.is_baseline].setting
  if not len(with_baseline):
    return f"{start}: no baseline has finished."
  counts = measured[measured.setting.isin(with_baseline)].setting.value_counts()
  if counts.max() == 1:
    return f"{start}: no other method has finished beside the baseline."
  return f"{start}: no method has finished with the same seed as the baseline."
