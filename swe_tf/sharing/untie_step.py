"""The untie step tau: how many updates are shared. Imports no TensorFlow.

Tau counts updates: the first tau updates are shared, update tau + 1 is the
first unshared one. The paper's Algorithm 1 prints `t < tau` for the shared
phase, its text says "untied after 100 steps"; the text is what counts here.
"""

from swe_tf import errors

# Section 5.3.2: about 10% of the steps is best.
PAPERS_FRACTION = 0.1


def resolve_untie_step(
  train_steps: int,
  *,
  untie_step: int | None = None,
  untie_fraction: float | None = PAPERS_FRACTION,
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
      f"untie_fraction={PAPERS_FRACTION} is what the paper recommends."
    )
  if not 0.0 <= untie_fraction <= 1.0:
    raise errors.UsageError(
      f"untie_fraction ({untie_fraction}) must be between 0.0 (never share) "
      "and 1.0 (always share)."
    )
  return round(untie_fraction * train_steps)
