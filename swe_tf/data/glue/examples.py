"""Reads GLUE files into examples; errors name the file and the line.

Accepts the files that are actually in use: the TSV files of the GLUE download
(quotes are text, MRPC starts with a byte order mark, CoLA and some QQP files
have no header, QQP has broken rows), test files without labels, SST-2 as
`label, content`, and MNLI and others as JSON lines. Imports no TensorFlow.
"""

import collections
import contextlib
import dataclasses

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks


@dataclasses.dataclass(frozen=True)
class GlueExample:
  index: int  # From 0 without the header, as in GLUE's prediction files.
  texts: tuple[str, ...]
  label: int | float | None  # The id of a class, or a score.


@dataclasses.dataclass(frozen=True)
class GlueFile:
  """The usable rows of one file."""

  path: files.Path
  examples: tuple[GlueExample, ...]
  dropped: int  # How many rows were left out; `GlueTask` has the reasons.
  labelled: bool


def read_glue_file(
  path: files.PathLike, task: glue_tasks.GlueTask, *, needs_labels: bool = True
) -> GlueFile:
  """Reads a TSV file, or JSON lines if the name ends in `.jsonl`."""
  path = files.as_path(path)
  lines = files.read_text(path).split("\n")
  if not lines[-1]:
    lines.pop()
  if not lines:
    raise errors.UsageError(f"{path} is empty.")
  columns, first = None, 1  # An object of JSON names its own.
  if path.suffix != ".jsonl":
    columns = lines[0].rstrip("\r").split("\t")
    if any(not set(columns).isdisjoint(n) for n in (*task.texts, task.label)):
      first = 2  # After the header.
    elif task.bare_columns:
      columns = list(task.bare_columns)
  for name, count in collections.Counter(columns or ()).items():
    if first == 2 and count > 1:
      raise errors.UsageError(
        f"{path}:1: the column {name!r} occurs twice; keep one."
      )
  rows = [
    _row(path, number, line, columns, task)
    for number, line in enumerate(lines[first - 1 :], first)
  ]
  columns = columns or list(rows[0] or ())  # A list or table is none.
  used = []  # The columns of the texts, then of the label if there is one.
  for names in (*task.texts, task.label):
    found = [name for name in names if name in columns]
    if found:
      used.append(found[0])
    elif names is not task.label or needs_labels:
      tip = "; tabs separate columns" if "," in "".join(columns) else ""
      raise errors.UsageError(
        f"{path}:1: no column {' or '.join(map(repr, names))}, which "
        f"{task.name} needs; found {', '.join(map(repr, columns))}{tip}."
      )
  labelled = len(used) > len(task.texts)

  examples = []
  dropped = 0
  for index, row in enumerate(rows):
    if row is None or (labelled and row.get(used[-1]) in task.ignored_labels):
      dropped += 1
      continue
    values: list[str] = []
    for name in used:
      value = row.get(name)
      if value is None:
        raise errors.UsageError(
          f"{path}:{first + index}: no text or number {name!r}."
        )
      values.append(value)
    try:
      label = parse_label(values.pop(), task) if labelled else None
    except ValueError as error:
      raise errors.UsageError(f"{path}:{first + index}: {error}") from error
    examples.append(GlueExample(index, tuple(values), label))
  if not examples:
    raise errors.UsageError(
      f"{path} has no usable example among its {len(lines)} lines."
    )
  return GlueFile(path, tuple(examples), dropped, labelled)


def read_glue_directory(
  input_dir: files.PathLike, task: glue_tasks.GlueTask
) -> list[GlueFile]:
  """Reads every data file in a task's directory, train files first."""
  paths = [
    path
    for role in ("train", "dev", "test", "diagnostic")
    for path in sorted(files.as_path(input_dir).glob(f"{role}*"))
    # MRPC's download has dev_ids.tsv, which has no texts.
    if path.suffix in (".tsv", ".jsonl") and not path.stem.endswith("_ids")
  ]
  if not paths:
    raise errors.UsageError(
      f"{input_dir} has no train, dev, test or diagnostic file that ends in "
      ".tsv or .jsonl."
    )
  # A split is known by its stem, also in the name of its records.
  stems = [path.stem for path in paths]
  for stem in stems:
    if stems.count(stem) > 1:
      raise errors.UsageError(
        f"{input_dir} has both {stem}.tsv and {stem}.jsonl; keep one."
      )
  labelled = ("train", "dev")
  return [
    read_glue_file(path, task, needs_labels=path.stem.startswith(labelled))
    for path in paths
  ]


def parse_label(text: str, task: glue_tasks.GlueTask) -> int | float:
  """Returns the id of a class or a score, or raises `ValueError`."""
  if text in task.labels:
    return task.labels.index(text)
  known = f"one of {', '.join(task.labels)}, the labels"
  if task.is_regression:
    low, high = glue_tasks.SCORE_RANGE
    with contextlib.suppress(ValueError):
      if low <= float(text) <= high:
        return float(text)
    known = f"a number from {low:g} to {high:g}, the scores"
  raise ValueError(f"label {text!r} is not {known} of {task.name}.")


def _row(path, number, line, columns, task) -> dict[str, str | None] | None:
  """Returns the cells of a line by column; None if the row is left out."""
  if columns is None:
    row = files.parse_json(line, path, number)
    if not isinstance(row, dict):
      raise errors.UsageError(f"{path}:{number}: not a JSON object.")
    # Labels may be numbers. What is neither a number nor text is missing.
    plain = {k: v for k, v in row.items() if type(v) in (str, int, float)}
    return {k: str(v) for k, v in plain.items()}
  # Not the csv module: here a quote is a character like any other.
  cells = line.rstrip("\r").split("\t")
  if len(cells) == len(columns):
    return dict(zip(columns, cells))
  if task.drops_malformed:
    return None
  raise errors.UsageError(
    f"{path}:{number}: {len(cells)} tab-separated columns where "
    f"{len(columns)} are expected ({', '.join(columns)})."
  )
