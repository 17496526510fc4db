"""Finds what is wrong with an experiment before TensorFlow is imported.

Reads config files, overrides and gin as Model Garden will, and checks names,
types and numbers against `fields.json`. What it cannot know (an experiment or a
method of a plug-in, a URL) is left to the experiment's own checks, which
include all of these.
"""

from collections.abc import Iterable, Mapping, Sequence
import os
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf import plugins
from swe_tf import yaml_files
from swe_tf.configs import consistency
from swe_tf.configs import fields
from swe_tf.configs import gin_text
from swe_tf.configs import override_text
from swe_tf.methods import checks
from swe_tf.methods import recipes
from swe_tf.modeling import registry

Table = Mapping[str, Any]
# Where overrides come from, and the overrides.
Layer = tuple[str, Any]


def read_values(
  experiment: str,
  config_files: Sequence[str] = (),
  params_override: str | None = None,
  gin_files: Sequence[str] = (),
  gin_params: Sequence[str] = (),
) -> dict[str, Any] | None:
  """Builds and checks the experiment that the stock driver's flags describe.

  Args:
    experiment: The name of the experiment.
    config_files: The files that override it; later ones win.
    params_override: Overrides that win over the files.
    gin_files: Gin files.
    gin_params: Gin bindings.

  Returns:
    The experiment as nested tables; None if it is not one of ours.

  Raises:
    UsageError: If it cannot be run.
  """
  gin = gin_text.read(gin_files, gin_params)
  check_experiment(experiment, gin.imports_others)
  layers = [*map(_read_file, config_files), _read_override(params_override)]
  return check_layers(experiment, layers, gin)


def check_experiment(experiment: str, may_be_others: bool = False) -> None:
  """Raises unless the experiment exists.

  Args:
    experiment: Its name.
    may_be_others: Whether a module that is not imported yet may register it.
  """
  table = fields.table()
  known = [*table["experiments"], *table["others"]]
  if experiment in known or may_be_others or os.environ.get(plugins.VARIABLE):
    return
  ours = ", ".join(table["experiments"])
  hint = errors.nearest(experiment, known, f"those of this package are {ours}.")
  raise errors.UsageError(
    f"--experiment={experiment}: there is no such experiment; {hint}"
  )


def check_layers(
  experiment: str,
  layers: Iterable[Layer],
  gin: gin_text.GinText | None = None,
) -> dict[str, Any] | None:
  """Applies overrides to an experiment and checks the result.

  Args:
    experiment: The name of the experiment.
    layers: The overrides; later ones win. None stands for overrides that only
      Model Garden can read.
    gin: The gin bindings.

  Returns:
    The experiment as nested tables; None if it is not known.

  Raises:
    UsageError: If it cannot be run.
  """
  layers = list(layers)
  if gin is not None and gin.overrides:
    layers.append(("gin", gin.overrides))
  values = merged(experiment, layers)
  if values is not None and all(each is not None for _, each in layers):
    shares = "sharing" in values["task"]
    consistency.check(values, follows_data=not shares)
    if shares and not (gin and gin.decides_sharing):
      _check_method(values)
  return values


def merged(experiment: str, layers: Iterable[Layer]) -> dict[str, Any] | None:
  """Applies overrides to an experiment, checking their names and types.

  Unlike `check_layers`, it does not check how the numbers fit together.
  """
  shape = fields.shape_of(experiment)
  if shape is None:
    return None
  values = fields.values_of(experiment)
  for source, overrides in layers:
    if overrides is not None:
      tidy = fields.tidy(shape, overrides, source)
      values = consistency.merge(values, tidy)
  return values


def _check_method(values: dict[str, Any]) -> None:
  """Applies the recipe, if any, to `values` and checks the method."""
  encoder = registry.encoder_of(values["task"])
  sharing = values["task"]["sharing"]
  if encoder is None or encoder.num_layers is None:
    return
  of_recipe = recipes.fields_of(sharing["recipe"], encoder.num_layers)
  values["task"]["sharing"] = {**sharing, **of_recipe}
  checks.check(values)


def _read_file(path: str) -> Layer:
  if not files.is_url(path) and not os.path.isfile(path):
    hint = errors.nearest(path, library.names(), "check the path.", 0.8)
    raise errors.UsageError(
      f"--config_file: {path}: there is no such file; {hint}"
    )
  content = yaml_files.read(path)
  try:
    return path, fields.as_table(content)
  except errors.UsageError as error:
    raise errors.UsageError(f"{path}: {error}") from error


def _read_override(text: str | None) -> Layer:
  return "--params_override", override_text.parse(text)
