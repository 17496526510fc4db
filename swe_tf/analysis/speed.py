"""How many steps a method needs to reach the baseline's final loss.

Each run's validation curve is compared with the baseline's run of the same
seed. The learning rate of both reaches 0 at the same last step, so the reading
is in the middle of a schedule: a run that was scheduled to end there would do
better. Imports no TensorFlow.
"""

import dataclasses

from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import scalars


@dataclasses.dataclass(frozen=True)
class Speed:
  """The steps that a method needs, relative to the baseline's.

  Attributes:
    steps_ratio: Mean and deviation over seeds; None unless all of them reach
      the loss: the mean of those that do would flatter the method.
    reverse_ratio: The same with the roles exchanged: the steps that the
      baseline needs to reach the method's final loss, relative to its own.
    reached: The number of seeds that reach the loss.
    pairs: The number of seeds that the baseline has too.
    validation_points: The smallest number of validations in a run.
  """

  steps_ratio: groups_lib.Statistic | None
  reverse_ratio: groups_lib.Statistic | None
  reached: int
  pairs: int
  validation_points: int


def measure(
  group: groups_lib.Group, baseline: groups_lib.Group
) -> Speed | None:
  """Compares a group with the baseline; None if they have no common seed."""
  others = {run.config.seed: run for run in baseline.runs}
  pairs = [
    (run, others[run.config.seed])
    for run in group.runs
    if run.config.seed in others
  ]
  if not pairs:
    return None
  ratios = [_ratio(run, other) for run, other in pairs]
  reverse = [_ratio(other, run) for run, other in pairs]
  return Speed(
    steps_ratio=None if None in ratios else groups_lib.summarize(ratios),
    reverse_ratio=None if None in reverse else groups_lib.summarize(reverse),
    reached=len(ratios) - ratios.count(None),
    pairs=len(pairs),
    validation_points=min(len(run.losses("validation")) for run, _ in pairs),
  )


def _ratio(run: found_runs.Run, other: found_runs.Run) -> float | None:
  """Returns the fraction of `run`'s steps that reach `other`'s final loss."""
  step = scalars.steps_to_reach(
    run.losses("validation"), other.scores[found_runs.LOSS]
  )
  return None if step is None else step / run.config.train_steps
