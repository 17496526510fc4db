"""Wall-clock time of a step with few loops, against the baseline's.

    python -m benchmarks.few_loops experiments/map/small_batch.yaml \
      task.train_data.input_path=...,task.validation_data.input_path=...

The trainers of the arms `baseline`, `stacking`, `loops1` and `loops3` of a
regime of the map are interleaved in one process: each makes some steps, input
included, in another order every round. Prints the median over the rounds of the
time of a step relative to the baseline's, in the cheap phase, and the resulting
time of the whole arm, without compiling and validation.
"""

import functools
import statistics
import sys
import tempfile

import tensorflow as tf

from benchmarks import common
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import tuning
from swe_tf.training import runner

ARMS = ("baseline", "stacking", "loops1", "loops3")
_ROUNDS, _STEPS = 15, 10
_CHEAP_PART = 0.3


def measure(study: study_file.Study, override: str) -> dict[str, list[float]]:
  """Returns the seconds of some steps of each arm, by round."""
  trainers = {}
  for arm in ARMS:
    run = study.run_of(tuning.Point(arm, 1e-4, 0))
    config = experiments.make_config(study, run, override)
    trainer = runner.make_runner(
      config, tempfile.mkdtemp(), mode="train"
    ).trainer
    trainer.train(tf.constant(_STEPS))
    trainers[arm] = trainer
  assert _CHEAP_PART * config.trainer.train_steps > _STEPS * (_ROUNDS + 1)
  sides = {
    arm: functools.partial(trainer.train, tf.constant(_STEPS))
    for arm, trainer in trainers.items()
  }
  times, _ = common.take_turns(sides, _ROUNDS)
  return times


def main(path: str, override: str) -> None:
  """Prints the ratios."""
  times = measure(study_file.read_study(path), override)
  seconds = statistics.median(times["baseline"]) / _STEPS
  print(f"baseline: {1000 * seconds:.1f} ms per step")
  for arm in ARMS[1:]:
    ratio = common.median_ratio(times, arm, "baseline")
    whole = _CHEAP_PART * ratio + 1 - _CHEAP_PART
    print(
      f"{arm}: {ratio:.3f} of it in the cheap phase, {whole:.3f} in all",
      flush=True,
    )


if __name__ == "__main__":
  main(*sys.argv[1:])
