"""When the shared phase ends: the untie step tau, or a rule of your own.

Tau counts updates: the first tau updates are shared, update tau + 1 is the
first unshared one. The paper's Algorithm 1 prints `t < tau` for the shared
phase, its text says "untied after 100 steps"; the text is what counts here.
"""

import abc
from typing import Optional

import gin

from swe_tf import errors


def resolve_untie_step(
    train_steps: int,
    *,
    untie_step: Optional[int] = None,
    untie_fraction: Optional[float] = 0.1,
) -> int:
  """Returns tau from a step, or from a fraction of the training steps.

  Args:
    train_steps: The number of updates of the whole run.
    untie_step: Tau itself. Wins over the fraction when it is set.
    untie_fraction: Tau as a fraction of `train_steps`, rounded to a step.

  Returns:
    Tau, between 0 (never shared) and `train_steps` (always shared).

  Raises:
    ValueError: If tau would fall outside of 0..train_steps.

  Example:

  >>> resolve_untie_step(500_000)
  50000
  >>> resolve_untie_step(500_000, untie_step=7)
  7
  """
  if untie_step is not None:
    if not 0 <= untie_step <= train_steps:
      raise errors.UsageError(
          f"untie_step ({untie_step}) must be between 0 (never share) and "
          f"train_steps ({train_steps}; always share)."
      )
    return int(untie_step)
  if untie_fraction is None:
    raise errors.UsageError(
        "Neither untie_step nor untie_fraction is set. Set one of them; "
        "untie_fraction=0.1 is what the paper recommends."
    )
  if not 0.0 <= untie_fraction <= 1.0:
    raise errors.UsageError(
        f"untie_fraction ({untie_fraction}) must be between 0.0 (never share) "
        "and 1.0 (always share)."
    )
  return round(untie_fraction * train_steps)


class UntieRule(abc.ABC):
  """Decides, between two compiled loops, whether to untie now.

  Subclass it for a rule that a config cannot express, and bind it in gin (see
  `gin/custom_rule.gin`). All methods run eagerly on the host, outside of the
  compiled step. On several workers every worker runs the rule: decide from
  values that are the same on all of them.
  """

  @abc.abstractmethod
  def next_decision(self, step: int) -> Optional[int]:
    """Returns the first step after `step` at which to decide, or None."""

  @abc.abstractmethod
  def should_untie(self, step: int, gradient_cosine: float) -> bool:
    """Decides after update `step`.

    Args:
      step: The number of updates made. It is one that `next_decision` named, or
        a later one if training was resumed there.
      gradient_cosine: The mean pairwise cosine between the tied layers'
        gradients at its last measurement; NaN before the first.

    Returns:
      Whether the next update is the first unshared one.
    """


@gin.configurable
class UntieAtStep(UntieRule):
  """The paper's rule: untie after tau updates."""

  def __init__(self, untie_step: int):
    self.untie_step = untie_step

  def next_decision(self, step: int) -> Optional[int]:
    return self.untie_step if step < self.untie_step else None

  def should_untie(self, step: int, gradient_cosine: float) -> bool:
    del gradient_cosine
    return step >= self.untie_step
