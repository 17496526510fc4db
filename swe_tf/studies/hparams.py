"""The runs of a study in TensorBoard's dashboard "HParams".

Its columns are the axes of the study and the metrics after the last step. They
have their own event files, beside those of the runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from swe_tf import files
from swe_tf.training import dashboards


def write_study(
  output_dir: files.PathLike,
  points: Sequence[Mapping[str, Any]],
  metrics: Sequence[str],
) -> None:
  """Writes the names of axes and metrics, replacing earlier ones."""
  from tensorboard.plugins.hparams import api

  axes = dict.fromkeys(axis for point in points for axis in point)
  content = api.hparams_config_pb(
    hparams=[api.HParam(axis) for axis in axes],
    metrics=[api.Metric(name, "validation", name) for name in metrics],
  )
  dashboards.write_events(output_dir, "study", content)


def write_run(directory: files.PathLike, point: Mapping[str, Any]) -> None:
  """Writes the values of a run on the axes: numbers, or else text."""
  from tensorboard.plugins.hparams import api

  # Runs with the same values count as one trial; a study has no such runs.
  values = {
    axis: value if isinstance(value, (bool, int, float, str)) else str(value)
    for axis, value in point.items()
  }
  dashboards.write_events(directory, "hparams", api.hparams_pb(values))
