r"""`official.nlp.train` with the swe experiments registered: the same flags.

    python -m swe_tf.train --experiment=swe/bert_pretraining \
      --mode=train_and_eval --model_dir=DIR --params_override=...

All it adds to the stock driver is what `gin/swe.gin` adds, and an error without
a stack trace when the input is at fault.
"""

import sys

from absl import app
from absl import flags

import gin
from official.common import flags as tfm_flags
from official.core import task_factory
from official.nlp import train as stock_driver
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import parsing
from swe_tf.training import trainer


def define_flags() -> None:
  """Defines the stock driver's flags, once a process."""
  if "experiment" not in flags.FLAGS:
    tfm_flags.define_flags()
    flags.mark_flags_as_required(["experiment", "mode", "model_dir"])


def _check_data() -> None:
  """Raises for bad data before the stock driver writes to `model_dir`."""
  gin.parse_config_files_and_bindings(
    flags.FLAGS.gin_file, flags.FLAGS.gin_params, finalize_config=False
  )
  params = parsing.parse_configuration(flags.FLAGS)
  task = task_factory.get_task(params.task)
  if hasattr(task, "check_data"):
    task.check_data()


def main(argv) -> None:
  """Runs the stock driver's `main` with our trainer."""
  with gin.unlock_config():
    gin.bind_parameter(
      "train_utils.create_trainer.trainer_cls", trainer.SharedWeightsTrainer
    )
  try:
    _check_data()
    stock_driver.main(argv)
  except errors.UsageError as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  define_flags()
  app.run(main)
