"""When sharing ends: the untie step tau, and the parameters of untie rules.

Imports no TensorFlow.

Tau counts updates: the first tau updates are shared, update tau + 1 is the
first unshared one. The paper's Algorithm 1 prints `t < tau` for the shared
phase, its text says "untied after 100 steps"; we follow the text.
"""

from collections.abc import Sequence

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
    untie_step: Tau itself. Takes precedence over the fraction.
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


def check_correlation(interval: int, rho: float, patience: int) -> None:
  """Raises unless these are valid for `adaptive.UntieByCorrelation`."""
  if interval < 1:
    raise errors.UsageError(f"interval ({interval}) must be at least 1.")
  if not -1.0 <= rho <= 1.0:
    raise errors.UsageError(
      f"rho ({rho}) must be a cosine, between -1.0 and 1.0."
    )
  if patience < 1:
    raise errors.UsageError(f"patience ({patience}) must be at least 1.")


def check_stages(untie_step: int, stages: Sequence[tuple[int, int]]) -> None:
  """Raises unless units grow from stage to stage, before tau.

  Args:
    untie_step: Tau.
    stages: Pairs of a step and the number of units that form a unit after that
      step, in order.
  """
  factor = 1
  for step, units in stages:
    if not 0 < step < untie_step:
      raise errors.UsageError(
        f"A stage begins at step {step}, which is not between 0 and the "
        f"untie step ({untie_step})."
      )
    if units % factor or units == factor:
      raise errors.UsageError(
        f"The stage at step {step} has units of {units}, after units of "
        f"{factor}: each must be a multiple of the one before."
      )
    factor = units
