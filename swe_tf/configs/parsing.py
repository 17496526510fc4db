"""From the stock driver's flags to an experiment, with one-line errors."""

from collections.abc import Iterator
import contextlib
from typing import Any

import gin
import tensorflow as tf
import yaml

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.core import train_utils
from official.modeling.hyperparams import params_dict
from swe_tf import errors
from swe_tf import fields
from swe_tf import yaml_files
from swe_tf.configs import limits
from swe_tf.methods import gin_bindings

# Gin itself reads local files only.
gin.config.register_file_reader(tf.io.gfile.GFile, tf.io.gfile.exists)

# What Model Garden and gin raise for a faulty config.
_FAULTS = (
  *(LookupError, AttributeError, TypeError, ValueError, SyntaxError),
  *(ImportError, OSError, tf.errors.OpError),
)

# What stock experiments leave to the user, or to chance, ends in a trace.
_STRATEGY = "runtime.distribution_strategy"
_STOCK = {_STRATEGY: limits.LIMITS[_STRATEGY]} | {
  f"trainer.optimizer_config.{name}": fields.Limit(least=0, required=True)
  for name in ("learning_rate.*.decay_steps", "warmup.*.warmup_steps")
}


@contextlib.contextmanager
def _one_line(place: str = "") -> Iterator[None]:
  """Turns whatever a config can raise into a line that begins with `place`."""
  with errors.part(f"{place}: " if place else ""):
    try:
      yield
    except errors.UsageError:
      raise
    except yaml.YAMLError as error:
      problem = getattr(error, "problem", None) or errors.first_line(error)
      raise errors.UsageError(f"not YAML ({problem}).") from error
    except _FAULTS as error:
      raise errors.UsageError(f"{errors.first_line(error)}.") from error


def parse_configuration(
  options: Any, lock_return: bool = True
) -> cfg.ExperimentConfig:
  """Builds and validates an experiment from the stock driver's flags."""
  parser = train_utils.ExperimentParser(options)
  params = base_experiment(options.experiment)
  for path in options.config_file or ():
    content = yaml_files.read(path)
    with _one_line(path):
      content = _checked(params, content)
      params.override(content, is_strict=True)
  params = parser.parse_data_service(parser.parse_runtime(params))
  params = apply_overrides(params, options.params_override)
  with _one_line():
    params.validate()
  if type(params) is cfg.ExperimentConfig:  # Ours follow `train_steps`.
    fields.check(params, _STOCK)
  if lock_return:
    params.lock()
  return params


def _checked(config: cfg.ExperimentConfig, overrides: Any) -> Any:
  """Returns overrides in the types of a stock experiment; ours check theirs."""
  optimizer = overrides
  for name in ("trainer", "optimizer_config", "optimizer", "type"):
    optimizer = optimizer.get(name) if isinstance(optimizer, dict) else None
  if optimizer == "swe":
    raise errors.UsageError(
      "trainer.optimizer_config.optimizer.type ('swe') must be the one to wrap,"
      " such as adamw: Model Garden makes optimizers without the model. A swe/ "
      "experiment shares by task.sharing, a stock one by gin/stock.gin."
    )
  if type(config) is not cfg.ExperimentConfig:
    return overrides
  task = overrides.get("task") if isinstance(overrides, dict) else None
  if "sharing" in (task or ()) and not hasattr(config.task, "sharing"):
    raise errors.UsageError(
      "this task has no task.sharing; share by gin: --gin_file=gin/stock.gin "
      "--gin_params='sharing.unit_size = 2'."
    )
  return fields.conform(config, overrides)


def base_experiment(name: str) -> cfg.ExperimentConfig:
  """Returns an experiment by name; raises `UsageError` if there is none."""
  try:
    return exp_factory.get_exp_config(name)
  except (LookupError, TypeError) as error:  # A name, or a part of one.
    ours = exp_factory._REGISTERED_CONFIGS.get("swe", {})  # pylint: disable=protected-access
    known = [f"swe/{each}" for each in ours]
    hint = errors.nearest(
      name, known, f"those of this package are {', '.join(known)}."
    )
    raise errors.UsageError(
      f"experiment {name!r}: there is no such experiment; {hint}"
    ) from error


def apply_overrides(
  config: cfg.ExperimentConfig, params_override: str | None
) -> cfg.ExperimentConfig:
  """Returns an experiment with `a=b,c=d` or YAML applied; not validated."""
  if not params_override:
    return config
  with _one_line("params_override"):
    pattern = params_dict._PARAM_RE  # pylint: disable=protected-access
    names, place = [], 0
    while match := pattern.match(params_override, place):
      names.append(match["name"])
      place = match.end()
    for name in names:
      # Model Garden would silently let the one hide the other.
      if names.count(name) > 1:
        errors.fault(f"{name} is set twice; set it once.")
      if any(other.startswith(f"{name}.") for other in names):
        errors.fault(
          f"{name} is set, and so is a parameter of this table; set only one."
        )
    text = params_override
    with contextlib.suppress(ValueError):  # Then it is YAML.
      text = params_dict.nested_csv_str_to_json_str(params_override)
    overrides = yaml_files.parse(text, "")
    if not isinstance(overrides, dict):
      # Model Garden would take it for the name of a file.
      raise errors.UsageError(
        f"{params_override!r} is not NAME=VALUE; separate parameters by "
        "commas, and put a value that has commas in quotes."
      )
    overrides = _checked(config, overrides)
    gin_bindings.refuse_conflicts(overrides)
    config.override(overrides, is_strict=True)
  return config


def parse_gin(options: Any) -> None:
  """Applies the stock driver's `gin_file` and `gin_params`."""
  try:
    gin.parse_config_files_and_bindings(
      options.gin_file, options.gin_params, finalize_config=False
    )
  except RecursionError as error:
    raise errors.UsageError(
      "gin: a file includes itself, or a value is nested too deeply."
    ) from error
  except _FAULTS as error:
    # The rest of `ast`'s message is the address of an object.
    reason = errors.first_line(error).partition(" on line")[0]
    raise errors.UsageError(
      f"gin: {reason}; a binding is NAME.PARAMETER = VALUE, with text in "
      "quotes."
    ) from error
