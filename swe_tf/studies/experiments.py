"""The experiments of a study's runs, checked before the first one starts."""

from collections.abc import Mapping, Sequence
import sys
from typing import Any

import numpy as np
import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.core import task_factory
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf import yaml_files
from swe_tf.configs import experiment as experiment_lib
from swe_tf.configs import limits
from swe_tf.configs import parsing
from swe_tf.modeling import registry as encoders
from swe_tf.studies import axes
from swe_tf.studies import study_file

Configs = Mapping[str, cfg.ExperimentConfig]


def make_config(
  study: study_file.Study, run: study_file.PlannedRun, params_override: str = ""
) -> cfg.ExperimentConfig:
  """Returns the experiment of a run, validated.

  `params_override` is for every run and comes last, as for `swe train`.
  """
  config = parsing.base_experiment(study.experiment)
  try:
    if not isinstance(config, experiment_lib.CheckedExperimentConfig):
      raise errors.UsageError(
        f"experiment {study.experiment} does not share weights; use "
        "swe/bert_pretraining or swe/bert_pretraining_text."
      )
    base = [yaml_files.read(path) for path in study.config_files]
    for overrides in (*base, study.overrides, *run.own):
      config.override(overrides, is_strict=True)
    encoder = encoders.require_encoder(config.task.as_dict())
    for axis, value in run.point.items():
      if axis in axes.KNOWN:
        config.override(axes.overrides_of(axis, value, encoder), is_strict=True)
    config = parsing.apply_overrides(config, params_override)
    config.validate()
  except (LookupError, AttributeError, ValueError) as error:
    raise errors.UsageError(f"run {run.name}: {error}") from error
  return config


def make_configs(
  study: study_file.Study, params_override: str = "", has_data: bool = True
) -> Configs:
  """Returns the experiments of all runs by name; checks their data too."""
  configs, checked = {}, set()
  for run in study.runs:
    config = configs[run.name] = make_config(study, run, params_override)
    both = repr((config.task.train_data, config.task.validation_data))
    if both in checked:
      continue
    checked.add(both)
    check_metrics(config, study.metrics)
    task = task_factory.get_task(config.task)
    reads_files = hasattr(task, "check_data")
    needed = ("train_data", "validation_data")
    limits.check_inputs(config, *(needed if has_data and reads_files else ()))
    for warning in task.check_data() if reads_files else ():
      print(f"WARNING: {warning}", file=sys.stderr)
  return configs


def check_metrics(
  config: cfg.ExperimentConfig, metrics: Sequence[str] = ()
) -> None:
  """Raises for a metric of pre-training that no evaluation measures.

  It would be missed only after the training.
  """
  trainer, task = config.trainer, task_factory.get_task(config.task)
  if not hasattr(task, "check_data"):  # Fine-tuning has metrics of its own.
    return
  # In a graph of its own: eager variables would start TensorFlow's devices,
  # and workers must be connected before that.
  with tf.Graph().as_default():
    measured = [metric.name for metric in task.build_metrics(training=False)]
  measured.append("validation_loss")
  wanted = dict.fromkeys(metrics, "metrics")
  if trainer.best_checkpoint_export_subdir:
    best = trainer.best_checkpoint_eval_metric
    wanted[best] = "trainer.best_checkpoint_eval_metric"
  for name, place in wanted.items():
    if name and name not in measured:
      known = f"it has {', '.join(measured)}."
      hint = errors.nearest(name, measured, known)
      raise errors.UsageError(f"{place}: validation has no {name!r}; {hint}")


def get(experiment: str, *overrides: Mapping[str, Any]) -> cfg.ExperimentConfig:
  """Returns an experiment with overrides that were checked, validated."""
  config = exp_factory.get_exp_config(experiment)
  for each in overrides:
    config.override(each, is_strict=False)
  config.validate()
  return config


def unigram_entropy(config: cfg.ExperimentConfig) -> float | None:
  """Returns the entropy in nats of the tokens to predict in validation.

  None for a task that does not predict tokens. It is the loss of the best model
  that ignores the context: a model that is not below it has learned how
  frequent tokens are, and nothing else.
  """
  dataset = task_factory.get_task(config.task).build_inputs(
    config.task.validation_data
  )
  steps = config.trainer.validation_steps
  batches: list[Any] = list(
    dataset.take(steps if steps > 0 else -1).as_numpy_iterator()
  )
  asks = [isinstance(b, Mapping) and "masked_lm_ids" in b for b in batches]
  if not batches or not all(asks):
    return None
  ids, weights = (
    np.concatenate([batch[f"masked_lm_{name}"].ravel() for batch in batches])
    for name in ("ids", "weights")
  )
  counts = np.bincount(ids, weights)
  share = counts[counts > 0] / counts.sum()
  return float(-(share * np.log(share)).sum())
