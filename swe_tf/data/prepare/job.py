"""`swe prepare pretraining`, from checked text to the manifest; resumable.

Everything is read and checked before anything is written. Nothing is ever
overwritten: shards of the same job are kept, and another job's are refused.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses
import os
import time
from typing import Any, TypeAlias

from rich import console as rich_console
from rich import progress as rich_progress

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import workers
from swe_tf.data.text import budget
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib

_BYTES_PER_SHARD = 16 << 20
# A process takes seconds to start; meanwhile, another does as much as this.
_BYTES_PER_JOB = 32 << 20
_VOCAB_SAMPLE_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(manifest.Settings):
  """The options of the job; the flags of the command have the same names.

  Attributes:
    input: Text files: paths or globs, separated by commas.
    output_dir: The folder for the shards, `vocab.txt` and `manifest.json`.
    vocab: The vocabulary file.
    learn_vocab: The size of the vocabulary to learn from the text instead. It
      is written to `vocab.txt`, and to `vocab` if that is given.
    jobs: The number of processes; None to choose by the cores and the text.
  """

  input: str
  output_dir: str
  vocab: str | None = None
  learn_vocab: int | None = None
  jobs: int | None = None

  def path(self, name: str) -> str:
    return os.path.join(self.output_dir, name)


# Writes the shards with the given numbers; yields each with its counts.
WriteShards: TypeAlias = Callable[
  [
    Options,
    vocab_lib.Vocabulary,
    Sequence[text_files.TextFile],
    Collection[int],
  ],
  Iterator[tuple[int, dict[str, int]]],
]


def prepare(
  options: Options,
  console: rich_console.Console,
  write_shards: WriteShards | None = None,
) -> dict[str, Any]:
  """Makes the shards, except those that an earlier call has made.

  Args:
    options: What to make.
    console: Shows the progress.
    write_shards: Does the work; by default, processes on this machine. The
      shards must be the same bytes.

  Returns:
    The manifest.

  Raises:
    UsageError: If it cannot be done; before anything is written.
  """
  if not options.learn_vocab:
    vocab_lib.Vocabulary.load(options.vocab)  # Reading the text takes longer.
  texts = _check_texts(options, console)
  vocabulary = _vocabulary(options, texts, console)
  options = _complete(options, texts)
  inputs = [
    {"name": os.path.basename(t.path), "bytes": t.size, "crc32": t.crc32}
    for t in texts
  ]
  done: dict[str, dict[str, int]] = {}

  def content() -> dict[str, Any]:
    return manifest.of_corpus(options, vocabulary, inputs, done)

  for name in (manifest.FILE_NAME, manifest.JOURNAL_NAME):
    found = manifest.load(options.output_dir, name)
    if found is None:
      continue
    done.update(manifest.shards_of(found))
    # The settings, the vocabulary and the checksums of the text are in it.
    if found != content():
      kind = "a finished" if name == manifest.FILE_NAME else "an unfinished"
      raise errors.UsageError(
        f"{options.output_dir} holds {kind} job with other settings or inputs; "
        "use the same ones, or choose another output_dir."
      )
    if name == manifest.FILE_NAME:
      console.print(
        f"{options.output_dir} is already finished; there is nothing to do."
      )
      return found
    break
  else:
    _refuse_strangers(options, vocabulary)

  # The journal comes first: it marks whatever follows as this job's.
  files.write_json(options.path(manifest.JOURNAL_NAME), content())
  for path in (options.path("vocab.txt"), options.vocab):
    if path and not files.as_path(path).exists():
      text = "".join(f"{token}\n" for token in vocabulary.tokens)
      files.write_text(path, text)
  for name in ("pretrain-", manifest.JOURNAL_NAME):
    # This job's, from when it was killed.
    for leftover in files.as_path(options.output_dir).glob(f"{name}*.partial"):
      leftover.rmtree()

  total = options.num_shards or 0
  todo = {i for i in range(total) if options.shard_name(i) not in done}
  shards = (write_shards or _write_here)(options, vocabulary, texts, todo)
  for index, counts in _with_progress(shards, total, len(done), console):
    done[options.shard_name(index)] = counts
    files.write_json(options.path(manifest.JOURNAL_NAME), content())
  files.write_json(options.path(manifest.FILE_NAME), content())
  files.as_path(options.path(manifest.JOURNAL_NAME)).unlink()
  return content()


def _check_texts(options, console) -> list[text_files.TextFile]:
  """Reads every input to its end."""
  paths = text_files.match(options.input)
  with rich_progress.Progress(
    console=console, transient=True, disable=not console.is_terminal
  ) as progress:
    return [
      text_files.check(path)
      for path in progress.track(paths, description="checking the text")
    ]


def _vocabulary(options, texts, console) -> vocab_lib.Vocabulary:
  """Returns the vocabulary: the given one, or one learned from the text."""
  if not options.learn_vocab:
    return vocab_lib.Vocabulary.load(options.vocab)
  learned = options.path("vocab.txt")
  known = (manifest.JOURNAL_NAME, manifest.FILE_NAME)
  if any(files.as_path(options.path(name)).exists() for name in known):
    if files.as_path(learned).exists():
      return vocab_lib.Vocabulary.load(learned)  # An earlier call learned it.
  else:
    files.refuse_existing(filter(None, [learned, options.vocab]))
  # Every n-th line of the text, so that all of it is represented.
  step = -(-sum(text.size for text in texts) // _VOCAB_SAMPLE_BYTES)
  lines = (
    line
    for block in text_files.read_blocks(texts, step)
    for line in block.split(b"\n")[::step]
  )
  with console.status("learning the vocabulary"):
    return vocab_lib.learn_wordpieces(
      lines, options.learn_vocab, options.lower_case
    )


def _complete(options: Options, texts) -> Options:
  """Fills in the settings that the options leave open."""
  lines = sum(text.lines for text in texts)
  if (options.num_shards or 1) > lines:
    raise errors.UsageError(
      f"num_shards is {options.num_shards}, but the text has {lines} lines; "
      "ask for fewer."
    )
  size = sum(text.size for text in texts)
  return dataclasses.replace(
    options,
    num_shards=options.num_shards or -(-size // _BYTES_PER_SHARD),
    max_predictions_per_seq=budget.max_predictions(
      options.seq_length, options.masking_rate, options.max_predictions_per_seq
    ),
  )


def _refuse_strangers(options, vocabulary):
  """Raises if a file that is not this job's would be overwritten."""
  names = map(options.shard_name, range(options.num_shards))
  files.refuse_existing(map(options.path, names))
  path = files.as_path(options.path("vocab.txt"))
  if path.exists() and vocab_lib.Vocabulary.load(path) != vocabulary:
    files.refuse_existing([path])


def _write_here(options, vocabulary, texts, todo):
  """Writes shards with processes on this machine."""
  size = sum(text.size for text in texts)
  jobs = options.jobs or min(os.cpu_count() or 1, 1 + size // _BYTES_PER_JOB)
  jobs = max(1, min(jobs, len(todo)))
  # Text is read in order, also that of shards which exist: to seek would not
  # work in a compressed file.
  blocks = enumerate(text_files.read_blocks(texts, options.num_shards))
  missing = (block for block in blocks if block[0] in todo)
  return workers.write_shards(
    missing,
    options,
    vocabulary,
    options.output_dir,
    max(1, min(jobs, len(todo))),
  )


def _with_progress(shards, total, completed, console):
  """Yields the shards, with a progress bar and the tokens per second."""
  columns = (
    *rich_progress.Progress.get_default_columns(),
    rich_progress.TextColumn("{task.fields[rate]}"),
  )
  with rich_progress.Progress(*columns, console=console) as progress:
    bar = progress.add_task(
      "writing shards", total=total, completed=completed, rate=""
    )
    start, tokens = time.monotonic(), 0
    for index, counts in shards:
      yield index, counts
      tokens += counts["tokens"]
      rate = tokens / (time.monotonic() - start)
      progress.update(bar, advance=1, rate=f"{rate:,.0f} tokens/s")
