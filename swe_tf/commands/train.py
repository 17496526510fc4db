r"""Runs `official.nlp.train` with the swe experiments; the flags are the same.

    swe train --experiment=swe/bert_pretraining --mode=train_and_eval \
      --model_dir=DIR --config_file=experiments/models/base.yaml \
      --params_override=...

To the stock driver it adds only what `gin/swe.gin` adds, a check of the
configuration and the data before anything is written, a progress bar, and a
clean exit: after SIGTERM or Ctrl-C it saves a checkpoint and exits with status
75, which means that the same command will resume.
"""

import dataclasses

from absl import flags
from absl import logging
from rich import console as rich_console

from swe_tf.commands import early
from swe_tf.commands import options as options_lib
from swe_tf.commands import stock_options
from swe_tf.studies import actions
from swe_tf.studies import progress as progress_lib


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The stock driver's flags."""

  mode: str = options_lib.flag("What to run.", choices=stock_options.MODES)
  model_dir: str = options_lib.flag(
    "Directory for checkpoints, summaries and params.yaml."
  )


def _check(options: Options) -> None:
  """Raises for bad input before the stock driver writes to `model_dir`."""
  import tensorflow as tf
  import tf_keras

  from official.core import task_factory
  from swe_tf.configs import experiment
  from swe_tf.configs import parsing
  from swe_tf.doctor import checks

  parsing.parse_gin(options)
  params = parsing.parse_configuration(options)
  is_ours = isinstance(params, experiment.CheckedExperimentConfig)
  if is_ours:
    early.check_experiment(options, params.as_dict())
  checks.check_devices(params)
  task = task_factory.get_task(params.task)
  if hasattr(task, "check_data"):
    task.check_data()
  loads = "train" in options.mode and params.task.init_checkpoint
  if is_ours and loads and not tf.train.latest_checkpoint(options.model_dir):
    task.initialize(task.build_model())
    tf_keras.backend.clear_session()  # The run's layer names start over.
  if is_ours:
    for warning in checks.warnings(params, options.model_dir):
      print(f"WARNING: {warning}", flush=True)


def _shown_trainer(shown: progress_lib.Progress, name: str):
  """Returns our trainer's class with a progress bar added."""
  from swe_tf.training import trainer

  class ShownTrainer(trainer.SharedWeightsTrainer):
    """Trains as its base class does, and shows the step and the loss."""

    _is_shown = False

    def train(self, num_steps):
      if not self._is_shown:
        self._is_shown = True
        step, steps = self.global_step.numpy(), self.config.trainer.train_steps
        shown.start(name, int(step), steps)
      logs = super().train(num_steps)
      actions.ReportLoss(self, lambda status: shown.step(name, status))(logs)
      return logs

  return ShownTrainer


def run(options: Options) -> None:
  """Runs the stock driver's `main` with our trainer."""
  early.check_run(options)
  # TensorFlow takes seconds to import.
  import gin

  from official.common import flags as tfm_flags
  from official.nlp import train as stock_driver
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.training import interruption
  from swe_tf.training import preemption
  from swe_tf.training import saving

  name = "train"
  shown = progress_lib.Progress(rich_console.Console(), {name: 1.0}, str)
  with gin.unlock_config():
    gin.bind_parameter(
      "train_utils.create_trainer.trainer_cls", _shown_trainer(shown, name)
    )
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)  # The run itself logs all of it again.
  _check(options)
  logging.set_verbosity(verbosity)
  if "experiment" not in flags.FLAGS:
    tfm_flags.define_flags()
  for name, value in vars(options).items():  # What the driver reads.
    flags.FLAGS[name].value = value
  with (
    shown,
    interruption.watch(),
    preemption.ends_after_saving(),
    saving.config_saved_whole(),
    saving.full_disk_told(options.model_dir),
  ):
    stock_driver.main([])
