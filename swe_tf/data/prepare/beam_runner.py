"""The work of `swe prepare pretraining` on an Apache Beam runner.

The work is divided as on one machine: a worker checks a whole file or writes a
whole shard, with the same functions, so the shards are the same bytes. A worker
writes its result to a small file beside the shards, since a pipeline returns
nothing to its caller. Beam is imported only when it is used.
"""

from collections.abc import Callable, Collection, Sequence
import dataclasses
import functools
import os
from typing import Any
import uuid

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import journal as journal_lib
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import workers
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib


@dataclasses.dataclass(frozen=True)
class BeamRunner:
  """A Beam runner and its options.

  Attributes:
    name: Beam's name for it, such as `DirectRunner`.
    options: Beam's pipeline options, each `name=value` or `name`.
  """

  name: str
  options: tuple[str, ...] = ()

  def check(self) -> None:
    """Raises `UsageError` if the runner or an option does not exist."""
    try:
      from apache_beam.options import pipeline_options
      from apache_beam.runners import runner
    except ImportError as error:
      raise errors.UsageError(
        f"--runner={self.name} needs Apache Beam ({error}); `make venv-beam` "
        "installs it in a separate environment."
      ) from error
    known = pipeline_options.PipelineOptions([]).get_all_options()
    for option in self.options:
      name = option.partition("=")[0]
      if name not in known:
        end = errors.nearest(name, known, "see the runner's documentation.")
        raise errors.UsageError(
          f"--runner_option={option}: Beam has no option {name!r}; {end}"
        )
    try:
      runner.create_runner(self.name)
      self._pipeline()
    except (ImportError, ValueError) as error:
      # Beam says what is wrong in the last lines.
      reason = " ".join(str(error).split()).rstrip(".")
      raise errors.UsageError(f"--runner={self.name}: {reason}.") from error

  def run(
    self, function: Callable[[Any], None], items: Collection[Any]
  ) -> None:
    """Calls a function with each item, on the workers."""
    import apache_beam as beam

    with self._pipeline() as pipeline:
      _ = pipeline | beam.Create(items) | beam.Map(function)

  def _pipeline(self):
    import apache_beam as beam
    from apache_beam.options import pipeline_options

    arguments = [f"--{option}" for option in self.options]
    options = pipeline_options.PipelineOptions(
      [f"--runner={self.name}", *arguments]
    )
    return beam.Pipeline(options=options)


def check_texts(
  runner: BeamRunner, paths: Sequence[str], output_dir: str
) -> list[text_files.TextFile]:
  """Reads every file to its end, each on one worker.

  Args:
    runner: The runner of the workers.
    paths: The files.
    output_dir: A directory that all workers share, for their results. It is
      left as it was.

  Raises:
    UsageError: For the first bad file.
  """
  directory = files.as_path(output_dir)
  existed = directory.exists()
  notes = directory / f"prepare-{uuid.uuid4().hex}.checks"
  try:
    runner.run(_CheckText(str(notes)), list(enumerate(paths)))
    found = [_read_note(_note_path(notes, i)) for i in range(len(paths))]
  finally:
    notes.rmtree(missing_ok=True)
    if not existed:
      directory.rmtree(missing_ok=True)
  for note in found:
    if "error" in note:
      raise errors.UsageError(note["error"])
  return [text_files.TextFile(**note) for note in found]


def write_shards(
  runner: BeamRunner,
  indices: Collection[int],
  texts: Sequence[text_files.TextFile],
  settings: manifest.Settings,
  vocabulary: vocab_lib.Vocabulary,
  output_dir: str,
) -> None:
  """Writes shards, each with a note for the journal when it is complete."""
  write = _WriteShard(tuple(texts), settings, vocabulary, output_dir)
  runner.run(write, sorted(indices))


@dataclasses.dataclass(frozen=True)
class _CheckText:
  """Checks a file and notes the result; runs on a worker."""

  notes: str

  def __call__(self, item: tuple[int, str]) -> None:
    index, path = item
    try:
      note = dataclasses.asdict(text_files.check(path))
    except errors.UsageError as error:
      note = {"error": str(error)}
    files.write_json(_note_path(self.notes, index), note)


@dataclasses.dataclass(frozen=True)
class _WriteShard:
  """Reads the text of a shard and writes the shard; runs on a worker."""

  texts: tuple[text_files.TextFile, ...]
  settings: manifest.Settings
  vocabulary: vocab_lib.Vocabulary
  output_dir: str

  def __call__(self, index: int) -> None:
    text = text_files.read_block(self.texts, self.settings.num_shards, index)
    write = _make_writer(self.settings, self.vocabulary, self.output_dir)
    _, counts, _ = write(index, text)
    journal_lib.note(
      os.path.join(self.output_dir, manifest.JOURNAL_NAME),
      self.settings.shard_name(index),
      counts,
    )


@functools.lru_cache(maxsize=1)  # It builds graphs, once in each process.
def _make_writer(*arguments):
  os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # As the command does.
  return workers.make_writer(*arguments)


def _note_path(notes: files.PathLike, index: int) -> files.Path:
  return files.as_path(notes) / f"{index:05d}.json"


def _read_note(path: files.Path) -> dict[str, Any]:
  if not path.exists():
    raise errors.Failed(
      f"the workers left nothing in {path.parent.parent}; --output_dir must be "
      "a place that all of them share."
    )
  return files.read_json(path)
