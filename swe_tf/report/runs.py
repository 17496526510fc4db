"""Finds the runs under directories and reads what they measured."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import os
import pathlib

from swe_tf import errors
from swe_tf import files
from swe_tf.report import facts as facts_lib
from swe_tf.runs import scalars as curves

FINISHED, UNFINISHED, DIVERGED, NOT_EVALUATED, REPEATED = (
  "finished",
  "unfinished",
  "diverged",
  "not evaluated",
  "repeated seed",
)

LOSS, ACCURACY = "validation loss", "MLM"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """A run of pre-training, as its directory tells it.

  Attributes:
    name: The directory, relative to where it was looked for.
    directory: The directory.
    facts: What its config says.
    step: The last step that was logged.
    status: `finished` if it counts. `not evaluated` has no validation at its
      last step; `repeated seed` is a second run of the same config and seed.
    train: Training curves by tag.
    validation: Validation curves by tag.
    seconds: The wall time, if it was written down.
    entropy: The entropy of single tokens, if the study wrote it down.
    scores: What it came to, by name: `LOSS`, the MLM accuracy in percent, and
      what the fine-tuning of its last checkpoint gave.
  """

  name: str
  directory: pathlib.Path
  facts: facts_lib.Facts
  step: int
  status: str
  train: Mapping[str, curves.Curve]
  validation: Mapping[str, curves.Curve]
  seconds: float | None = None
  entropy: float | None = None
  scores: Mapping[str, float] = dataclasses.field(default_factory=dict)

  @property
  def untie_step(self) -> float | None:
    """The step after which it was untied; measured where no config fixes it."""
    measured = self.train.get("sharing/untie_step")
    if self.facts.untie_step is not None or not measured:
      return self.facts.untie_step
    return measured[-1][1] if self.facts.method == facts_lib.SWE else None


def directories_with(
  roots: Sequence[files.PathLike], name: str
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
  """Yields (root, directory) for each directory that holds a file, once."""
  seen = set()
  for root in map(pathlib.Path, roots):
    for place, folders, names in os.walk(root):
      folders.sort()
      directory = pathlib.Path(place)
      if name in names and directory.resolve() not in seen:
        seen.add(directory.resolve())
        yield root, directory


def read_runs(roots: Sequence[files.PathLike]) -> list[Run]:
  """Reads all runs under some directories.

  Args:
    roots: The directories.

  Returns:
    The runs, sorted by root and path.

  Raises:
    UsageError: If a directory is not there, or there is no run.
  """
  for root in roots:
    if not os.path.isdir(root):
      raise errors.UsageError(
        f"--runs={root} is no directory; name one with runs in it."
      )
  found, seen = [], set()
  for root, directory in directories_with(roots, "params.yaml"):
    config = facts_lib.read_config(directory / "params.yaml")
    if not facts_lib.is_pretraining(config):
      continue  # Fine-tuning, or of something else.
    run = _read_run(root, directory, facts_lib.facts_of(config))
    if run.status == FINISHED:
      key = repr(
        (
          sorted(run.facts.setting.items()),
          run.facts.variant,
          run.facts.learning_rate,
          run.facts.seed,
        )
      )
      if key in seen:
        run = dataclasses.replace(run, status=REPEATED)
      seen.add(key)
    found.append(run)
  if not found:
    raise errors.UsageError(
      f"--runs={','.join(map(str, roots))}: no run of pre-training in it "
      "(a directory with params.yaml, train/ and validation/)."
    )
  return found


def _read_run(
  root: pathlib.Path, directory: pathlib.Path, facts: facts_lib.Facts
) -> Run:
  train = _scalars(directory / "train")
  validation = _scalars(directory / "validation")
  result = _json(directory / "result.json")
  step = max(
    (
      curve[-1][0] for curve in [*train.values(), *validation.values()] if curve
    ),
    default=0,
  )
  loss = _at(validation.get("validation_loss"), facts.train_steps)
  accuracy = _at(validation.get("masked_lm_accuracy"), facts.train_steps)
  # NaN may end a run at any step: it is a result, not an interruption.
  last = [
    curve[-1][1]
    for curve in (train.get("training_loss"), validation.get("validation_loss"))
    if curve
  ]
  if result.get("status") == DIVERGED or not all(map(math.isfinite, last)):
    status = DIVERGED
  elif step < facts.train_steps:
    status = UNFINISHED
  else:
    status = FINISHED if loss is not None else NOT_EVALUATED
  scores = {}
  if status == FINISHED:
    scores[LOSS] = loss
    if accuracy is not None:
      scores[ACCURACY] = 100 * accuracy
  name = directory.relative_to(root)
  return Run(
    name=str(pathlib.Path(root.name) / name),
    directory=directory,
    facts=facts,
    step=step,
    status=status,
    train=train,
    validation=validation,
    seconds=_number(result.get("seconds")),
    entropy=_number(
      _json(directory.parent / "study.json").get("unigram_entropy")
    ),
    scores=scores,
  )


def _scalars(directory: pathlib.Path) -> dict[str, curves.Curve]:
  return curves.read_scalars(str(directory)) if directory.is_dir() else {}


def _json(path: pathlib.Path) -> dict:
  content = files.read_json(path) if path.exists() else {}
  return content if isinstance(content, dict) else {}


def _number(value) -> float | None:
  return float(value) if isinstance(value, (int, float)) else None


def _at(curve: curves.Curve | None, step: int) -> float | None:
  return dict(curve or ()).get(step)
