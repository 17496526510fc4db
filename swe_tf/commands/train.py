r"""`official.nlp.train` with the swe experiments registered: the same flags.

    swe train --experiment=swe/bert_pretraining --mode=train_and_eval \
      --model_dir=DIR --config_file=experiments/models/base.yaml \
      --params_override=...

All it adds to the stock driver is what `gin/swe.gin` adds, a check of the
configuration and the data before anything is written, and an orderly end: after
SIGTERM or Ctrl-C it saves a checkpoint and exits with status 75, which says
that the same command goes on.
"""

import dataclasses

from absl import flags
import gin

from official.common import flags as tfm_flags
from official.core import task_factory
from official.nlp import train as stock_driver
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.commands import options as options_lib
from swe_tf.commands import stock_options
from swe_tf.configs import parsing
from swe_tf.training import interruption
from swe_tf.training import trainer


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The stock driver's flags."""

  mode: str = options_lib.flag("What to run.", choices=stock_options.MODES)
  model_dir: str = options_lib.flag(
    "Directory for checkpoints, summaries and params.yaml."
  )


def _check(options: Options) -> None:
  """Raises for bad input before the stock driver writes to `model_dir`."""
  gin.parse_config_files_and_bindings(
    options.gin_file, options.gin_params, finalize_config=False
  )
  params = parsing.parse_configuration(options)
  task = task_factory.get_task(params.task)
  if hasattr(task, "check_data"):
    task.check_data()


def run(options: Options) -> None:
  """Runs the stock driver's `main` with our trainer."""
  with gin.unlock_config():
    gin.bind_parameter(
      "train_utils.create_trainer.trainer_cls", trainer.SharedWeightsTrainer
    )
  _check(options)
  if "experiment" not in flags.FLAGS:
    tfm_flags.define_flags()
  for name, value in vars(options).items():  # What the driver reads.
    flags.FLAGS[name].value = value
  with interruption.watch():
    stock_driver.main([])
