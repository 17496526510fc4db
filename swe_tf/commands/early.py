"""What a command checks of a run beside `validate()`.

Before TensorFlow is imported: that the files of the flags exist, and that the
output can be written. Once the experiment is parsed: that its data is given,
and that a run that would be resumed has the same model.
"""

from collections.abc import Mapping
import os
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf import yaml_files
from swe_tf.commands import stock_options
from swe_tf.configs import sameness
from swe_tf.modeling import checkpoint_files

_TRAIN, _VALIDATION = "train_data", "validation_data"


def check_plan(options: stock_options.StockOptions) -> None:
  """Raises unless the files of the flags exist. Needs no TensorFlow."""
  for flag in ("config_file", "gin_file"):
    for path in getattr(options, flag):
      if not files.is_url(path) and not os.path.isfile(path):
        hint = errors.nearest(path, library.names(), "check the path.", 0.8)
        raise errors.UsageError(
          f"--{flag}: {path}: there is no such file; {hint}"
        )


def check_run(options: stock_options.StockOptions) -> None:
  """Checks the flags of a run and its directory. Needs no TensorFlow."""
  if options.mode == "train_and_validate":
    raise errors.UsageError(
      "--mode=train_and_validate is not in this version of Model Garden; use "
      "train_and_eval."
    )
  check_plan(options)
  if options.model_dir:
    files.check_output_dir(options.model_dir, "model_dir")


def check_experiment(
  options: stock_options.StockOptions, values: Mapping[str, Any]
) -> None:
  """Checks what a run needs beside a valid config.

  Args:
    options: The flags of the run.
    values: Its experiment, as nested tables.
  """
  modes = {_TRAIN: "train", _VALIDATION: "eval"}
  mode = options.mode or ""
  needed = [name for name, word in modes.items() if word in mode]
  if not options.experiment.startswith("swe/"):
    needed = []  # The data of a plug-in's experiment may not be in files.
  model_dir = options.model_dir or ""
  resumes = (
    bool(model_dir) and (files.as_path(model_dir) / "checkpoint").exists()
  )
  check_data(values, *needed, resumes=resumes)
  if resumes:
    _check_same_model(values, model_dir)


def check_data(
  values: Mapping[str, Any], *needed: str, resumes: bool = False
) -> None:
  """Raises unless the data that is needed is given, and `init_checkpoint` is.

  Whether the data is sound, the task checks; fine-tuning follows its data, so
  `validate()` has read it.

  Args:
    values: The experiment as nested tables.
    *needed: The data that must be given: `train_data`, `validation_data`.
    resumes: Whether the run already has a checkpoint of its own.
  """
  task = values["task"]
  if _VALIDATION in needed and values["trainer"]["validation_steps"] == 0:
    raise errors.UsageError(
      "trainer.validation_steps is 0, so nothing is evaluated; set it to -1 "
      "for all of the data."
    )
  if "data_dir" in task:
    return
  for name in needed:
    if not (task[name].get("input_path") or task[name].get("tfds_name")):
      raise errors.UsageError(
        f"task.{name}.input_path is not set; name the files, for instance by "
        f"--params_override=task.{name}.input_path=DIR/*.tfrecord."
      )
  if task["init_checkpoint"] and not resumes:
    checkpoint_files.find(task["init_checkpoint"], "task.init_checkpoint")


def _check_same_model(values: Mapping[str, Any], model_dir: str) -> None:
  """Raises if the run in `model_dir` would resume with a different encoder."""
  try:
    before = yaml_files.read(files.as_path(model_dir) / "params.yaml")
  except errors.UsageError:
    return  # Every start rewrites it, and nothing else reads it.
  if not isinstance(before, dict) or "data_dir" in values["task"]:
    return  # Fine-tuning takes its encoder from the checkpoint.
  for field, then, now in sameness.difference(
    before, values, lambda field: field.startswith("task.model.")
  ):
    raise errors.UsageError(
      f"--model_dir={model_dir} has a run with {field}={then}, but now it is "
      f"{now}; choose another model_dir, or the configuration of that run."
    )
