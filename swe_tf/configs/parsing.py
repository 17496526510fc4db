"""From flags to an experiment, with one line for what is not there."""

from typing import Any

import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import train_utils
from official.modeling import hyperparams
from swe_tf import errors


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
    return train_utils.parse_configuration(values, print_return=False, **kwargs)
  except LookupError as error:  # No such experiment, no such parameter.
    raise errors.UsageError(str(error.args[0])) from error
  except tf.errors.NotFoundError as error:
    raise errors.UsageError(f"--config_file: {error.message}.") from error


def apply_overrides(
  config: cfg.ExperimentConfig, params_override: str | None
) -> cfg.ExperimentConfig:
  """Changes an experiment as `--params_override` says.

  Args:
    config: The experiment.
    params_override: YAML or `a=b,c=d`; may be empty.

  Returns:
    The experiment, not validated.

  Raises:
    UsageError: If there is no such parameter, or it has no such value.
  """
  if not params_override:
    return config
  try:
    return hyperparams.override_params_dict(
      config, params_override, is_strict=True
    )
  except (LookupError, AttributeError, ValueError) as error:
    reason = str(error.args[0] if error.args else error).splitlines()[0]
    raise errors.UsageError(
      f"--params_override={params_override}: {reason}"
    ) from error
