"""Finds the runs under directories and reads what they measured."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import math
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import run_config
from swe_tf.analysis import scalars
from swe_tf.methods import catalog

FINISHED, UNFINISHED, DIVERGED = "finished", "unfinished", "diverged"
NOT_EVALUATED, REPEATED = "not evaluated", "repeated seed"
LOSS, ACCURACY = "validation loss", "MLM"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """A pre-training run, as read from its directory.

  Attributes:
    name: Its name for readers; see `directories_with`.
    directory: The directory.
    config: Its config.
    step: The last step that was logged.
    status: `finished` if it counts. `not evaluated` has no validation at its
      last step; `repeated seed` is a second run with the same config and seed.
    train: Training curves by tag.
    validation: Validation curves by tag.
    seconds: The wall time, if it was recorded.
    entropy: The entropy of single tokens, if the study recorded it.
    scores: Its scores by name: `LOSS`, the MLM accuracy in percent, and the
      fine-tuning scores of its last checkpoint.
  """

  name: str
  directory: files.Path
  config: run_config.RunConfig
  step: int
  status: str
  train: Mapping[str, scalars.Curve]
  validation: Mapping[str, scalars.Curve]
  seconds: float | None = None
  entropy: float | None = None
  scores: Mapping[str, float] = dataclasses.field(default_factory=dict)

  @property
  def untie_step(self) -> float | None:
    """The untie step; the measured one if the config does not fix it."""
    measured = self.train.get("sharing/untie_step")
    if self.config.untie_step is not None or not measured:
      return self.config.untie_step
    return measured[-1][1] if self.config.method == catalog.SWE else None

  def losses(self, kind: str) -> scalars.Curve:
    """Returns the loss curve of a kind, `training` or `validation`."""
    curves = self.train if kind == "training" else self.validation
    return curves.get(f"{kind}_loss", [])


def directories_with(
  roots: Sequence[files.PathLike], name: str
) -> Iterator[tuple[str, files.Path]]:
  """Yields the name for readers and the path of each directory with a file.

  The name is the path from the root, preceded by the root's own name. Every
  directory is yielded once, even if several roots contain it.
  """
  seen = set()
  for root in map(files.as_path, roots):
    for path in files.directories_with(root, name):
      if path.resolve() not in seen:
        seen.add(path.resolve())
        yield str(pathlib.PurePath(root.name) / path.relative_to(root)), path


def read_runs(
  roots: Sequence[files.PathLike], may_be_none: bool = False
) -> list[Run]:
  """Reads all runs under some directories.

  Args:
    roots: The directories.
    may_be_none: Whether to accept that there are none.

  Returns:
    The runs, sorted by root and path.

  Raises:
    UsageError: If a directory does not exist, or there is no run.
  """
  for root in roots:
    if not files.as_path(root).is_dir():
      raise errors.UsageError(
        f"--runs={root} is not a directory; name one with runs in it."
      )
  found, seen = [], set()
  for name, directory in directories_with(roots, "params.yaml"):
    content = yaml_files.read(directory / "params.yaml")
    if not run_config.is_pretraining(content):
      continue  # Fine-tuning, or something else.
    try:
      config = run_config.read(content)
    except errors.UsageError as error:
      raise errors.UsageError(
        f"{directory}/params.yaml: {error} Correct it, or leave the run out."
      ) from error
    run = _read_run(name, directory, config)
    if run.status == FINISHED:
      key = repr(
        (config.setting, config.variant, config.learning_rate, config.seed)
      )
      if key in seen:
        run = dataclasses.replace(run, status=REPEATED)
      seen.add(key)
    found.append(run)
  if not found and not may_be_none:
    raise errors.UsageError(
      f"--runs={','.join(map(str, roots))}: no pre-training run in it (a "
      "directory with params.yaml, train/ and validation/)."
    )
  return found


def _read_run(
  name: str, directory: files.Path, config: run_config.RunConfig
) -> Run:
  train = _scalars(directory / "train")
  validation = _scalars(directory / "validation")
  result = _json(directory / "result.json")
  curves = [curve for curve in (*train.values(), *validation.values()) if curve]
  step = max((curve[-1][0] for curve in curves), default=0)
  losses = validation.get("validation_loss", [])
  loss = dict(losses).get(config.train_steps)
  # NaN may end a run at any step: it is a result, not an interruption.
  last = [each[-1][1] for each in (train.get("training_loss"), losses) if each]
  if result.get("status") == DIVERGED or not all(map(math.isfinite, last)):
    status = DIVERGED
  elif step < config.train_steps:
    status = UNFINISHED
  else:
    status = NOT_EVALUATED if loss is None else FINISHED
  scores = {}
  if status == FINISHED and loss is not None:
    scores[LOSS] = loss
    accuracies = dict(validation.get("masked_lm_accuracy", []))
    if config.train_steps in accuracies:
      scores[ACCURACY] = 100 * accuracies[config.train_steps]
  study = _json(directory.parent / "study.json")
  return Run(
    name=name,
    directory=directory,
    config=config,
    step=step,
    status=status,
    train=train,
    validation=validation,
    seconds=_number(result.get("seconds")),
    entropy=_number(study.get("unigram_entropy")),
    scores=scores,
  )


def _scalars(directory: files.Path) -> dict[str, scalars.Curve]:
  return scalars.read_scalars(str(directory)) if directory.is_dir() else {}


def _json(path: files.Path) -> dict[str, Any]:
  content = files.read_json(path) if path.exists() else {}
  return content if isinstance(content, dict) else {}


def _number(value: Any) -> float | None:
  return float(value) if isinstance(value, (int, float)) else None
