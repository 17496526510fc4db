"""Scalars from a run's TensorBoard logs."""

from collections.abc import Mapping
from typing import Any

from swe_tf import files

Curve = list[tuple[int, float]]


def read_scalars(log_dir: str) -> dict[str, Curve]:
  """Returns every scalar of the event files in `log_dir` by tag.

  Sorted by step. Where a run was interrupted and resumed, a step may have been
  logged twice; the later value is the one that the run continued with.
  """
  from tensorboard.backend.event_processing import event_accumulator
  from tensorboard.util import tensor_util

  for path in files.as_path(log_dir).glob("*tfevents*"):
    files.check_regular(path)
  accumulator = event_accumulator.EventAccumulator(
    log_dir, size_guidance={event_accumulator.TENSORS: 0}
  )
  accumulator.Reload()
  curves = {}
  for tag in accumulator.Tags()["tensors"]:
    events = sorted(accumulator.Tensors(tag), key=lambda e: e.wall_time)
    values = {
      e.step: float(tensor_util.make_ndarray(e.tensor_proto)) for e in events
    }
    curves[tag] = sorted(values.items())
  return curves


def read_run(
  directory: files.Path, trainer: Mapping[str, Any] | None
) -> dict[str, Curve]:
  """Returns the curves of a run by kind and tag: `train/training_loss`.

  `trainer` is that of its `params.yaml`, in which a stranger may have written
  anything.
  """
  known = trainer if isinstance(trainer, Mapping) else {}
  folder = str(known.get("validation_summary_subdir") or "validation")
  return {
    f"{kind}/{tag}": curve
    for kind, place in (("train", "train"), ("validation", folder))
    if (directory / place).is_dir()
    for tag, curve in read_scalars(str(directory / place)).items()
  }
