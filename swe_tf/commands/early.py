"""Checks that a command makes before it imports TensorFlow.

A wrong call fails within a fraction of a second, and nothing is written.
"""

from collections.abc import Mapping
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.commands import stock_options
from swe_tf.configs import consistency
from swe_tf.configs import early
from swe_tf.configs import override_text
from swe_tf.data.prepare import prepared_data
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry

_TRAIN, _VALIDATION = "train_data", "validation_data"


def read_values(options: stock_options.StockOptions) -> dict[str, Any] | None:
  """Returns the experiment's values, or None if it is not one of ours.

  Raises:
    UsageError: If a file, a name, a type or a number is wrong.
  """
  return early.read_values(
    options.experiment,
    options.config_file,
    options.params_override,
    options.gin_file,
    options.gin_params,
  )


def check_plan(
  options: stock_options.StockOptions,
) -> Mapping[str, Any] | None:
  """Checks an experiment, which must share weights, but not its data."""
  values = read_values(options)
  if values is not None and "sharing" not in values["task"]:
    raise errors.UsageError(
      f"--experiment={options.experiment} does not share weights; use "
      "swe/bert_pretraining or swe/bert_pretraining_text."
    )
  return values


def check_data(
  values: Mapping[str, Any], *needed: str, resumes: bool = False
) -> None:
  """Checks the files of the data and of `init_checkpoint`.

  Args:
    values: The experiment.
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
    prepared_data.read_prepared_data(task["data_dir"])
    if task["init_checkpoint"]:
      checkpoint_files.find_with_config(task["init_checkpoint"])
    return
  for name in needed:
    data = task[name]
    if not (data["input_path"] or data.get("tfds_name")):
      raise errors.UsageError(
        f"task.{name}.input_path is not set; name the files, for instance by "
        f"--params_override=task.{name}.input_path=DIR/*.tfrecord."
      )
  if task["init_checkpoint"] and not resumes:
    checkpoint_files.find(task["init_checkpoint"], "task.init_checkpoint")


def check_run(options: stock_options.StockOptions) -> None:
  """Checks everything that a run needs to start, including its directory."""
  mode = options.mode or ""
  if mode == "train_and_validate":
    raise errors.UsageError(
      "--mode=train_and_validate is not in this version of Model Garden; use "
      "train_and_eval."
    )
  values = read_values(options)
  if options.model_dir:
    files.check_output_dir(options.model_dir, "model_dir")
  if values is None:
    return
  consistency.check_replicas(values)
  modes = {_TRAIN: "train", _VALIDATION: "eval"}
  needed = [name for name, word in modes.items() if word in mode]
  model_dir = options.model_dir
  resumes = (
    model_dir is not None and (files.as_path(model_dir) / "checkpoint").exists()
  )
  check_data(values, *needed, resumes=resumes)
  if model_dir is not None and resumes:
    _check_same_model(values, model_dir)


def _check_same_model(values: Mapping[str, Any], model_dir: str) -> None:
  """Raises if the run in `model_dir` would resume with a different encoder."""
  try:
    before = yaml_files.read(files.as_path(model_dir) / "params.yaml")
  except errors.UsageError:
    return  # Every start rewrites it, and nothing else reads it.
  if not isinstance(before, dict):
    return
  encoders = [
    registry.encoder_of(each.get("task") or {}) for each in (before, values)
  ]
  if "data_dir" in values["task"] or None in encoders:
    return  # Fine-tuning takes its encoder from the checkpoint.
  then, now = (each.params for each in encoders if each is not None)
  for name in registry.SIZES:
    if then.get(name) and now.get(name) and then[name] != now[name]:
      raise errors.UsageError(
        f"--model_dir={model_dir} has a run whose encoder has {name}="
        f"{then[name]}, but now it is {now[name]}; choose another model_dir, "
        "or the configuration of that run."
      )


def check_finetuning(
  experiment: str, checkpoint: str, params_override: str, output_dir: str
) -> None:
  """Checks what `swe finetune` needs besides the data.

  Args:
    experiment: `swe/glue` or `swe/squad`.
    checkpoint: `--checkpoint`.
    params_override: `--params_override`.
    output_dir: `--output_dir`.
  """
  files.check_output_dir(output_dir, "output_dir")
  overrides = override_text.parse(params_override)
  early.check_layers(experiment, [("--params_override", overrides)])
  checkpoint_files.find_with_config(checkpoint)
