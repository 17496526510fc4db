"""The paper's fine-tuning protocol (section 5.1).

Nine peak learning rates, with five runs of each for SQuAD and one for GLUE.
Imports no TensorFlow.
"""

from collections.abc import Sequence
import dataclasses

from swe_tf import errors
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.studies import study_file

LEARNING_RATES = (1e-5, 1.5e-5, 2e-5, 3e-5, 4e-5, 5e-5, 7.5e-5, 10e-5, 12e-5)
SQUAD_SEEDS = 5

CHECKPOINT, RANDOM = INITS = ("checkpoint", "random")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
  """What the runs of a task have in common; it is in `study.json`.

  With `init` random, only the architecture comes from the checkpoint. 0
  `max_train_examples` stands for all.
  """

  data_dir: str
  checkpoint: str
  init: str = CHECKPOINT
  epochs: float = 3.0
  max_train_examples: int = 0
  params_override: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
  """The fine-tuning of one task; `ax_data_dir`, for MNLI, may be empty."""

  settings: Settings
  runs: Sequence[study_file.PlannedRun]
  output_dir: str
  data: manifest.PreparedData
  ax_data_dir: str = ""


def plan_runs(
  data: manifest.PreparedData,
  learning_rates: Sequence[float] = (),
  seeds: int | None = None,
) -> Sequence[study_file.PlannedRun]:
  """Returns the runs of a task, in order of execution."""
  rates = list(learning_rates or LEARNING_RATES)
  if min(rates) <= 0 or len(set(rates)) < len(rates):
    raise errors.UsageError(
      f"learning_rates={','.join(map(str, rates))}: they must be positive "
      "and distinct."
    )
  count = seeds or (SQUAD_SEEDS if data.is_squad else 1)
  # All rates once, then all rates again: fine-tuning that is stopped early has
  # seen every rate.
  return study_file.plan_runs(
    {"seed": list(range(count)), "learning_rate": rates}
  )


def check_task(name: str, data: manifest.PreparedData) -> None:
  """Raises `UsageError` unless the named task can be trained on the data."""
  wanted = name.lower()
  if not wanted.startswith("squad"):
    wanted = glue_tasks.find_task(name).name
  if wanted == "AX":
    raise errors.UsageError(
      "AX has no training data and is answered by the MNLI model: fine-tune on "
      "MNLI with ax_data_dir."
    )
  if wanted != data.task:
    raise errors.UsageError(
      f"the task is {name}, but {data.directory} was prepared for {data.task}."
    )
  if not data.train:
    raise errors.UsageError(
      f"{data.directory} has no training data, only {', '.join(data.splits)}."
    )


def check_ax(data: manifest.PreparedData, ax_data_dir: str) -> None:
  """Raises `UsageError` unless AX can be answered by a model for `data`."""
  if not ax_data_dir:
    return
  ax_data = manifest.read(ax_data_dir)
  for task, holder in (("MNLI", data), ("AX", ax_data)):
    if holder.task != task:
      raise errors.UsageError(
        f"ax_data_dir is for MNLI and AX, but {holder.directory} was "
        f"prepared for {holder.task}."
      )
  for key in ("vocab_sha256", "max_seq_length", "do_lower_case"):
    if ax_data.meta[key] != data.meta[key]:
      raise errors.UsageError(
        f"{ax_data.path}: {key} is {ax_data.meta[key]}, but {data.meta[key]} "
        f"in {data.directory}; prepare both with the same settings."
      )


def selecting_metric(data: manifest.PreparedData) -> str:
  if data.is_squad:
    return "best_f1" if data.meta["version_2_with_negative"] else "f1"
  return glue_tasks.find_task(data.task).metrics[0]
