"""The experiments of a study's runs, checked before the first one starts."""

from typing import Any

import numpy as np
import yaml

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.core import task_factory
from official.modeling import hyperparams
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import experiment
from swe_tf.modeling import sizes
from swe_tf.study import axes
from swe_tf.study import plan


def make_config(
  study: plan.Study, run: plan.Run, params_override: str = ""
) -> cfg.ExperimentConfig:
  """Returns the experiment of a run, validated.

  Args:
    study: The study.
    run: The run.
    params_override: Changes every run, after everything else; as for
      `swe train`.

  Raises:
    UsageError: If it cannot be run.
  """
  try:
    config = exp_factory.get_exp_config(study.experiment)
    for path in study.config_files:
      with open(path, encoding="utf-8") as file:
        config.override(yaml.safe_load(file), is_strict=True)
    config.override(study.overrides, is_strict=True)
    for own in run.own:
      config.override(own, is_strict=True)
    if not isinstance(config, experiment.SharingExperimentConfig):
      raise errors.UsageError(
        f"experiment {study.experiment} does not share weights; use "
        "swe/bert_pretraining or swe/bert_pretraining_text."
      )
    encoder = config.task.model.encoder.get()
    for axis, value in run.point.items():
      if axis in axes.KNOWN:
        config.override(axes.overrides_of(axis, value, encoder), is_strict=True)
    if params_override:
      config = hyperparams.override_params_dict(
        config, params_override, is_strict=True
      )
    _check_units(run, encoder.num_layers)
    config.validate()
  except (LookupError, AttributeError, ValueError) as error:
    raise errors.UsageError(f"run {run.name}: {error}") from error
  return config


def _check_units(run: plan.Run, num_layers: int) -> None:
  if "units" in run.point:
    size, count = axes.parse_units(run.point["units"])
    if count is not None and size * count != num_layers:
      raise errors.UsageError(
        f"units {run.point['units']} are {size * count} layers, but the "
        f"model has {num_layers}."
      )


def check_data(config: cfg.ExperimentConfig) -> None:
  """Raises unless the data of a run is there and fits."""
  task_factory.get_task(config.task).check_data()


def training_flops(config: cfg.ExperimentConfig) -> int:
  """Returns the FLOPs of the matrix products of the whole run."""
  encoder, data = config.task.model.encoder.get(), config.task.train_data
  size = sizes.Size(
    num_layers=encoder.num_layers,
    hidden_size=encoder.hidden_size,
    num_attention_heads=encoder.num_attention_heads,
    intermediate_size=encoder.intermediate_size,
  )
  predictions = getattr(data, "max_predictions_per_seq", None) or round(
    getattr(data, "masking_rate", 0.15) * data.seq_length
  )
  return config.trainer.train_steps * sizes.training_flops(
    size,
    data.global_batch_size,
    data.seq_length,
    predictions,
    encoder.vocab_size,
  )


def tokens(config: cfg.ExperimentConfig) -> int:
  data = config.task.train_data
  return config.trainer.train_steps * data.global_batch_size * data.seq_length


def unigram_entropy(config: cfg.ExperimentConfig) -> float:
  """Returns the entropy in nats of the tokens that validation asks for.

  It is the loss of the best model that does not look at the context: who is
  not below it has learned how frequent tokens are, and nothing else.
  """
  task = task_factory.get_task(config.task)
  dataset = task.build_inputs(config.task.validation_data)
  steps = config.trainer.validation_steps
  counts: Any = np.zeros(config.task.model.encoder.get().vocab_size)
  for batch in dataset.take(steps if steps > 0 else -1).as_numpy_iterator():
    weights = batch["masked_lm_weights"].ravel()
    np.add.at(counts, batch["masked_lm_ids"].ravel(), weights)
  share = counts[counts > 0] / counts.sum()
  return float(-(share * np.log(share)).sum())
