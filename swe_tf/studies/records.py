"""The finished runs of a tuned study's sweep, as records to compare."""

import math

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import scalars
from swe_tf.studies import directory as directory_lib


def read_records(output_dir: files.PathLike) -> list[outcome_lib.Record]:
  """Reads the finished runs of a tuned study's sweep, even while it runs.

  Raises:
    UsageError: If there is no such sweep.
  """
  from swe_tf.configs import cost
  from swe_tf.studies import experiments

  root = files.as_path(output_dir)
  if not (root / "study.json").exists():
    raise errors.UsageError(
      f"{root} has no study.json: no sweep was run there."
    )
  study = files.read_json(root / "study.json")
  records = []
  for name, point in study["runs"].items():
    run = directory_lib.RunDirectory(root / name)
    result = run.read_result()
    if result is None or not point.get("arm"):
      continue
    config = experiments.read_config(study["experiment"], run.config_file)
    metric = study["metrics"][0]
    loss = result["metrics"][metric]
    curves = scalars.read_scalars(str(run.path / "validation"))
    if metric not in curves:  # Its directory was made anew, without them.
      continue
    trained = scalars.read_scalars(str(run.path / "train"))
    records.append(
      outcome_lib.Record(
        arm=point["arm"],
        learning_rate=point["learning_rate"],
        seed=point["seed"],
        final_loss=loss if math.isfinite(loss) else math.inf,
        steps=result["steps"],
        phases=cost.phase_flops(config),
        seconds=result["seconds"],
        curve=tuple(curves[metric]),
        cosines=_cosines(trained, config.task.sharing.unit_size),
      )
    )
  return records


def _cosines(
  curves: dict[str, scalars.Curve], unit_size: int
) -> tuple[tuple[int, float], ...]:
  """Returns the mean cosine between the weights of two units, by step.

  From each layer's distance d to the mean of the layers at the same place in
  their B units, relative to its own norm: for layers of about equal norms, the
  squared norm of that mean is 1 - mean(d^2) of theirs, and the mean cosine of
  pairs follows from it.
  """
  by_step: dict[int, list[float]] = {}
  for tag, curve in curves.items():
    if tag.startswith("layers/distance/"):
      for step, distance in curve:
        by_step.setdefault(step, []).append(distance**2)
  found = []
  for step, squares in sorted(by_step.items()):
    units = len(squares) // unit_size
    if units > 1:
      common = 1.0 - sum(squares) / len(squares)
      found.append((step, (units * common - 1.0) / (units - 1.0)))
  return tuple(found)
