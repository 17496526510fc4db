"""The flags of `official.nlp.train` as options, and what is checked of them.

`validate()` checks the experiment itself. Here follow that the files of the
flags exist, which needs no TensorFlow, that the data is given, and that a run
that would be resumed has the same model.
"""

import dataclasses
import os
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf import messages
from swe_tf import yaml_files
from swe_tf.commands import options as opt

MODES = (
  "train",
  "eval",
  "train_and_eval",
  "continuous_eval",
  "continuous_train_and_eval",
  "train_and_validate",
  "train_and_post_eval",
)


@dataclasses.dataclass(frozen=True)
class StockOptions:
  """The stock driver's flags, which Model Garden's parser accepts as flags."""

  experiment: str = opt.flag("The experiment, such as swe/bert_pretraining.")
  mode: str | None = opt.flag("What to run.", None, choices=MODES)
  model_dir: str | None = opt.flag("Directory for the run.", None)
  config_file: tuple[str, ...] = opt.flag(
    "YAML file that overrides the experiment: a path, or a name that `swe "
    "experiments` lists; can be repeated, later files win.",
    (),
    repeated=True,
  )
  params_override: str | None = opt.flag(
    "Overrides that win over all files: YAML, or a.b=1,c.d=2.", None
  )
  gin_file: tuple[str, ...] = opt.flag(
    "Gin file; can be repeated.", (), repeated=True
  )
  gin_params: tuple[str, ...] = opt.flag(
    "Gin binding; can be repeated.", (), repeated=True
  )
  tpu: str | None = opt.flag("The TPU: its name or grpc:// address.", None)
  tf_data_service: str | None = opt.flag("Address of a tf.data service.", None)
  tpu_platform: str | None = opt.flag("The type of TPU platform.", None)
  tfhub_handle: str | None = opt.flag("Not used by this driver.", None)
  tflex_output_uri: str | None = opt.flag("Not used by this driver.", None)
  pretrain_steps: int | None = opt.flag(
    "Steps of the pre-training that continuous_train_and_eval follows.", None
  )
  enable_async_checkpointing: bool = opt.flag(
    "Write checkpoints in the background during training.", True
  )

  def __contains__(self, name: str) -> bool:
    """Supports `name in flags`, which Model Garden uses."""
    return hasattr(self, name)

  def check_files(self) -> None:
    """Raises unless the flags name files, of YAML. Needs no TensorFlow."""
    for flag in ("config_file", "gin_file"):
      for path in getattr(self, flag):
        if not files.is_url(path) and not os.path.isfile(path):
          hint = errors.nearest(path, library.names(), "check the path.", 0.8)
          raise errors.UsageError(
            f"--{flag}: {path}: there is no such file; {hint}"
          )
    for path in self.config_file:
      yaml_files.read(path)


def read_config(options: StockOptions, must_share: bool = True) -> Any:
  """Returns the validated experiment of the flags; no data is read.

  It has `task.sharing` if it `must_share`, or if gin has a stock task share.
  """
  options.check_files()
  with messages.during("starting TensorFlow"):
    if not options.experiment.startswith("swe/"):  # It takes seconds.
      from official.common import registry_imports  # noqa: F401 (registers)
    from swe_tf import registry  # noqa: F401 (registers)
    from swe_tf.configs import experiment
    from swe_tf.configs import parsing
    from swe_tf.methods import gin_bindings

  parsing.parse_gin(options)
  config = parsing.parse_configuration(options, lock_return=False)
  is_ours = isinstance(config, experiment.CheckedExperimentConfig)
  if not is_ours and gin_bindings.is_shared_by_gin():
    with errors.part():
      config = gin_bindings.describe(config)
  if must_share and not hasattr(config.task, "sharing"):
    raise errors.UsageError(
      f"--experiment={options.experiment} does not share weights; use "
      "swe/bert_pretraining or swe/bert_pretraining_text, or share a stock "
      "experiment's with --gin_file=gin/stock.gin."
    )
  return config


def needed_data(options: StockOptions) -> list[str]:
  words = {"train_data": "train", "validation_data": "eval"}
  if not options.experiment.startswith("swe/"):
    return []  # The data of a plug-in's experiment may not be in files.
  return [data for data, word in words.items() if word in (options.mode or "")]


def check_inputs(options: StockOptions, config: Any) -> None:
  """Raises unless what the mode reads is given; see `limits.check_inputs`."""
  from swe_tf.configs import limits

  model_dir = files.as_path(options.model_dir or "")
  resumes = bool(options.model_dir) and (model_dir / "checkpoint").exists()
  limits.check_inputs(config, *needed_data(options), resumes=resumes)


def check_stock(config: Any) -> None:
  """Raises, before a model is built, unless a stock experiment can start."""
  from swe_tf.data import checks
  from swe_tf.methods import gin_bindings

  if gin_bindings.is_shared_by_gin():
    gin_bindings.describe(config)
  # The data of a plug-in's task may not be in files.
  if type(config.task).__module__.startswith("official.nlp."):
    data = config.task.train_data, config.task.validation_data
    checks.check_exists(*filter(None, data))
