"""From flags to an experiment, with one-line errors."""

from typing import Any

import gin
import tensorflow as tf
import yaml

from official.core import config_definitions as cfg
from official.core import train_utils
from official.modeling import hyperparams
from swe_tf import errors

# Gin itself reads local files only.
gin.config.register_file_reader(tf.io.gfile.GFile, tf.io.gfile.exists)

# What Model Garden raises for a faulty config.
_FAULTS = (LookupError, AttributeError, TypeError, ValueError, yaml.YAMLError)


def parse_configuration(values: Any, **kwargs) -> cfg.ExperimentConfig:
  """Calls Model Garden's `parse_configuration`.

  Args:
    values: Has the stock driver's flags as attributes.
    **kwargs: See Model Garden.

  Returns:
    The experiment, validated.

  Raises:
    UsageError: If an experiment, a parameter or a file does not exist.
  """
  try:
    params = train_utils.parse_configuration(
      values, print_return=False, **kwargs
    )
  except errors.UsageError:
    raise
  except tf.errors.NotFoundError as error:
    raise errors.UsageError(f"--config_file: {error.message}.") from error
  except (*_FAULTS, tf.errors.OpError) as error:
    raise errors.UsageError(f"{errors.first_line(error)}.") from error
  if params.runtime.distribution_strategy is False:  # In a stock experiment.
    raise errors.UsageError(
      "runtime.distribution_strategy is false, which is how YAML reads off; "
      "put it in quotes: runtime.distribution_strategy='off'."
    )
  return params


def parse_gin(values: Any) -> None:
  """Applies `--gin_file` and `--gin_params`.

  Args:
    values: Has the stock driver's flags as attributes.

  Raises:
    UsageError: If a file does not exist, or a binding is wrong.
  """
  try:
    gin.parse_config_files_and_bindings(
      values.gin_file, values.gin_params, finalize_config=False
    )
  except errors.UsageError:
    raise
  except (*_FAULTS, OSError, ImportError, SyntaxError) as error:
    raise errors.UsageError(f"gin: {errors.first_line(error)}.") from error


def apply_overrides(
  config: cfg.ExperimentConfig, params_override: str | None
) -> cfg.ExperimentConfig:
  """Applies `--params_override` to an experiment.

  Args:
    config: The experiment.
    params_override: YAML or `a=b,c=d`; may be empty.

  Returns:
    The experiment, not validated.

  Raises:
    UsageError: If a parameter does not exist, or its value is not allowed.
  """
  if not params_override:
    return config
  try:
    return hyperparams.override_params_dict(
      config, params_override, is_strict=True
    )
  except errors.UsageError as error:
    raise errors.UsageError(f"--params_override: {error}") from error
  except (*_FAULTS, tf.errors.OpError) as error:
    raise errors.UsageError(
      f"--params_override={params_override}: {errors.first_line(error)}."
    ) from error
