"""The runs of a study, checked before TensorFlow is imported.

Makes the same experiments as `experiments.py`, as nested tables.
"""

from collections.abc import Iterator
from typing import Any

from swe_tf import errors
from swe_tf import yaml_files
from swe_tf.configs import early
from swe_tf.configs import override_text
from swe_tf.modeling import registry
from swe_tf.studies import axes
from swe_tf.studies import study_file


def check(
  study: study_file.Study, params_override: str = ""
) -> Iterator[dict[str, Any]]:
  """Yields the experiment of each run, checked, as nested tables.

  Yields nothing for an experiment that is not one of ours.

  Args:
    study: The study.
    params_override: Overrides for every run, applied last.

  Raises:
    UsageError: If the experiment of a run is not valid.
  """
  early.check_experiment(study.experiment)
  base: list[early.Layer] = [
    (path, yaml_files.read(path)) for path in study.config_files
  ]
  base.append(("overrides", study.overrides))
  last = ("--params_override", override_text.parse(params_override))
  for run in study.runs:
    layers = base + [(f"run {run.name}", own) for own in run.own]
    try:
      values = early.check_layers(
        study.experiment, [*layers, *_of_axes(study, run, layers), last]
      )
    except errors.UsageError as error:
      raise errors.UsageError(f"run {run.name}: {error}") from error
    if values is None:
      return
    yield values


def _of_axes(
  study: study_file.Study, run: study_file.Run, layers: list[early.Layer]
) -> list[early.Layer]:
  """Returns the overrides from the axes of a run."""
  known = [axis for axis in run.point if axis in axes.KNOWN]
  values = early.merged(study.experiment, layers) if known else None
  encoder = registry.encoder_of(values["task"]) if values else None
  if encoder is None:
    return []
  if "units" in run.point:
    axes.check_units(run.point["units"], encoder.num_layers)
  return [
    (f"axes.{axis}", axes.overrides_of(axis, run.point[axis], encoder))
    for axis in known
  ]
