"""The job of `swe prepare pretraining`, from checked text to the manifest.

Everything is read and checked before anything is written. Nothing is ever
overwritten: shards of the same job are kept, and another job's are refused.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import os
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import beam_runner
from swe_tf.data.prepare import journal as journal_lib
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import workers
from swe_tf.data.text import budget
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib

_BYTES_PER_SHARD = 16 << 20
# A process takes seconds to start; meanwhile, another does as much as this.
_BYTES_PER_JOB = 32 << 20
_VOCAB_SAMPLE_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True)
class Options:
  """The options of the job; the flags of the command have the same names.

  Attributes not listed are as in `manifest.Settings`.

  Attributes:
    input: Text files: paths or globs, separated by commas.
    output_dir: The folder for the shards, `vocab.txt` and `manifest.json`.
    vocab: The vocabulary file.
    learn_vocab: The size of the vocabulary to learn from the text instead. It
      is written to `vocab.txt`, and to `vocab` if that is given.
    num_shards: The number of shards; None for one per 16 MB of text.
    max_predictions_per_seq: None for `seq_length * masking_rate`, rounded up.
    jobs: The number of processes; None to choose by the cores and the text.
    runner: The Apache Beam runner that does the work; None for processes on
      this machine.
    runner_option: Beam's pipeline options, each `name=value` or `name`.
  """

  input: str
  output_dir: str
  vocab: str | None = None
  learn_vocab: int | None = None
  num_shards: int | None = None
  max_predictions_per_seq: int | None = None
  jobs: int | None = None
  runner: str | None = None
  runner_option: tuple[str, ...] = ()
  seq_length: int = 512
  masking: str = "random"
  masking_rate: float = 0.15
  lower_case: bool = True
  next_sentence: bool = False
  dupe_factor: int = 1
  seed: int = 0

  def path(self, name: str) -> str:
    return os.path.join(self.output_dir, name)

  @property
  def beam(self) -> beam_runner.BeamRunner | None:
    if not self.runner:
      return None
    return beam_runner.BeamRunner(self.runner, self.runner_option)


def prepare(options: Options, console: rich_console.Console) -> dict[str, Any]:
  """Makes the shards, except those that an earlier call has made.

  Returns:
    The manifest.

  Raises:
    UsageError: If it cannot be done; before anything is written.
  """
  if files.uses_private_memory(options.output_dir, options.input) and (
    options.runner or (options.jobs or 1) > 1
  ):
    chosen = f"runner={options.runner}" if options.runner else "jobs"
    raise errors.UsageError(
      f"--{chosen}: ram:// is the memory of one process; use --jobs=1 and no "
      "runner, or other paths."
    )
  if not options.learn_vocab:
    vocab_lib.Vocabulary.load(options.vocab)
  if options.beam:
    options.beam.check()
  texts = _check_texts(options, console)
  vocabulary = _vocabulary(options, texts, console)
  settings = _settings(options, texts, vocabulary)
  job = {
    "settings": dataclasses.asdict(settings),
    "inputs": [
      {"name": os.path.basename(t.path), "bytes": t.size, "crc32": t.crc32}
      for t in texts
    ],
  }
  finished = _finished(options, job)
  if finished:
    console.print(
      f"{options.output_dir} is already finished; there is nothing to do."
    )
    return finished
  _refuse_strangers(options, settings, vocabulary)
  # First, since it refuses to go on with another job's files.
  journal = journal_lib.Journal(options.path(manifest.JOURNAL_NAME), job)
  _write_vocabulary(vocabulary, options.path("vocab.txt"))
  if options.vocab and not files.as_path(options.vocab).exists():
    _write_vocabulary(vocabulary, options.vocab)
  _write_shards(options, texts, settings, vocabulary, journal, console)
  content = manifest.of_corpus(job, journal.done)
  manifest.write(options.output_dir, content)
  journal.remove()
  return content


def _check_texts(options, console) -> list[text_files.TextFile]:
  """Reads every input to its end."""
  paths = text_files.match(options.input)
  if options.beam:
    with console.status(f"checking the text with {options.runner}"):
      return beam_runner.check_texts(options.beam, paths, options.output_dir)
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
  with console.status("learning the vocabulary"):
    return vocab_lib.learn_wordpieces(
      _sample_lines(texts), options.learn_vocab, options.lower_case
    )


def _sample_lines(texts: Sequence[text_files.TextFile]) -> Iterator[bytes]:
  """Yields every n-th line, so that all of the text is represented."""
  count = -(-sum(text.size for text in texts) // _VOCAB_SAMPLE_BYTES)
  for block in text_files.read_blocks(texts, count):
    yield from block.split(b"\n")[::count]


def _write_vocabulary(vocabulary, path):
  files.write_text(path, "".join(f"{token}\n" for token in vocabulary.tokens))


def _settings(options, texts, vocabulary) -> manifest.Settings:
  """Fills in what the options leave open."""
  num_lines = sum(text.lines for text in texts)
  if (options.num_shards or 1) > num_lines:
    raise errors.UsageError(
      f"--num_shards={options.num_shards}, but the text has {num_lines} "
      "lines; ask for fewer."
    )
  size = sum(text.size for text in texts)
  values = dataclasses.asdict(options) | {
    "max_predictions_per_seq": budget.max_predictions(
      options.seq_length, options.masking_rate, options.max_predictions_per_seq
    ),
    "num_shards": options.num_shards or -(-size // _BYTES_PER_SHARD),
    "vocab_size": len(vocabulary),
    "vocab_sha256": vocabulary.sha256,
  }
  names = [field.name for field in dataclasses.fields(manifest.Settings)]
  return manifest.Settings(**{name: values[name] for name in names})


def _finished(options, job) -> dict[str, Any] | None:
  """Returns the manifest if this job is done; raises if another one is."""
  found = manifest.load(options.output_dir)
  if found and found != manifest.of_corpus(job, manifest.shards_of(found)):
    raise errors.UsageError(
      f"{options.output_dir} holds shards with other settings or inputs; "
      "choose another --output_dir."
    )
  return found


def _refuse_strangers(options, settings, vocabulary):
  """Raises if a file that is not this job's would be overwritten."""
  if files.as_path(options.path(manifest.JOURNAL_NAME)).exists():
    return  # The journal checks whose files these are.
  names = map(settings.shard_name, range(settings.num_shards))
  files.refuse_existing(map(options.path, names))
  path = files.as_path(options.path("vocab.txt"))
  if path.exists() and vocab_lib.Vocabulary.load(path) != vocabulary:
    files.refuse_existing([path])


def _write_shards(options, texts, settings, vocabulary, journal, console):
  """Writes the missing shards, with a progress bar."""
  for leftover in files.as_path(options.output_dir).glob("pretrain-*.partial"):
    leftover.rmtree()  # This job's, from when it was killed.
  total = settings.num_shards
  todo = {i for i in range(total) if settings.shard_name(i) not in journal.done}
  if options.beam:
    with console.status(f"writing {len(todo)} shards with {options.runner}"):
      beam_runner.write_shards(
        options.beam, todo, texts, settings, vocabulary, options.output_dir
      )
    journal.collect()
    if len(journal.done) < total:
      raise errors.Failed(
        f"{options.runner} ended, but {len(journal.done)} of {total} shards "
        f"are in {options.output_dir}; all workers must share this directory."
      )
    return
  size = sum(text.size for text in texts)
  most = min(os.cpu_count(), 1 + size // _BYTES_PER_JOB)
  if files.uses_private_memory(options.output_dir):
    most = 1
  jobs = options.jobs or most
  jobs = min(jobs, len(todo))
  blocks = enumerate(text_files.read_blocks(texts, total))
  missing = (block for block in blocks if block[0] in todo)
  shards = workers.write_shards(
    missing, settings, vocabulary, options.output_dir, jobs
  )
  columns = (
    *rich_progress.Progress.get_default_columns(),
    rich_progress.TextColumn("{task.fields[rate]}"),
  )
  with rich_progress.Progress(*columns, console=console) as progress:
    done = total - len(todo)
    bar = progress.add_task(
      "writing shards", total=total, completed=done, rate=""
    )
    tokens, work = 0, 0.0
    for index, counts, seconds in shards:
      journal.add(settings.shard_name(index), counts)
      tokens += counts["tokens"]
      work += seconds
      rate = f"{jobs * tokens / work:,.0f} tokens/s"
      progress.update(bar, advance=1, rate=rate)
