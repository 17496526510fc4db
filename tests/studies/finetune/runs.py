"""A fine-tuning run in its directory, as `swe finetune` makes it."""

import pathlib

from swe_tf.data.prepare import prepared_data
from swe_tf.studies import executors
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import task as task_lib


def make_run(
  output_dir: pathlib.Path,
  data_dir: str,
  checkpoint: str,
  learning_rate: float,
  **settings,
) -> executors.SweepRun:
  """Returns a run with seed 0 that is ready to be trained."""
  data = prepared_data.read_prepared_data(data_dir)
  task = task_lib.FineTuning(
    protocol.Plan(
      settings=protocol.Settings(
        data_dir=data_dir, checkpoint=checkpoint, **settings
      ),
      runs=protocol.plan_runs(data, [learning_rate], 1),
      output_dir=str(output_dir),
      data=data,
    )
  )
  (run,) = task.runs
  run.begin()
  return run
