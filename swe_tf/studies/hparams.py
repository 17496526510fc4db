"""The runs of a study in TensorBoard's dashboard "HParams".

Its columns are the axes of the study and the metrics after the last step. They
have their own event files, beside those of the runs. Imports no TensorFlow
until it writes.
"""

from collections.abc import Mapping
from typing import Any

from swe_tf import files
from swe_tf.studies import study_file
from swe_tf.training import dashboards


def write_study(output_dir: files.PathLike, study: study_file.Study) -> None:
  """Writes the axes and the metrics, replacing earlier ones."""
  from tensorboard.plugins.hparams import api

  values: dict[str, dict[Any, None]] = {}
  for run in study.runs:
    for axis, value in _simple(run.point).items():
      values.setdefault(axis, {})[value] = None
  dashboards.write_events(
    output_dir,
    "study",
    api.hparams_config_pb(
      hparams=[api.HParam(axis, _domain(api, values[axis])) for axis in values],
      metrics=[
        api.Metric(name, group="validation", display_name=name)
        for name in study.metrics
      ],
    ),
  )


def write_run(
  directory: files.PathLike, point: Mapping[str, Any], is_finished: bool = False
) -> None:
  """Writes the values of a run on the axes, replacing earlier ones.

  Args:
    directory: The run's directory.
    point: The value on each axis that matters to the run.
    is_finished: Whether the run is finished.
  """
  from tensorboard.plugins.hparams import api
  from tensorboard.plugins.hparams import api_pb2
  from tensorboard.plugins.hparams import summary

  # Runs with the same values count as one trial; a study has no such runs.
  summaries = [api.hparams_pb(_simple(point))]
  if is_finished:
    summaries.append(summary.session_end_pb(api_pb2.STATUS_SUCCESS))
  dashboards.write_events(directory, "hparams", *summaries)


def _simple(point: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the values in the form that the dashboard takes: numbers, text."""
  return {
    axis: value if isinstance(value, (bool, int, float, str)) else str(value)
    for axis, value in point.items()
  }


def _domain(api, values: Mapping[Any, None]):
  """Returns all values of an axis; None if they are of several types."""
  kinds = {float if type(value) is int else type(value) for value in values}
  if len(kinds) > 1:
    return None
  (kind,) = kinds
  return api.Discrete(sorted(map(kind, values)), dtype=kind)
