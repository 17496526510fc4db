"""`swe prepare pretraining`, from checked text to the manifest; resumable.

Everything is checked before anything is written. Nothing is ever overwritten:
shards of the same job are kept, and another job's are refused.
"""

from concurrent import futures
import dataclasses
import os
import time
from typing import Any

from rich import console as rich_console
from rich import progress as rich_progress

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.data.prepare import manifest
from swe_tf.data.text import text_files
from swe_tf.data.text import token_records
from swe_tf.data.text import vocab as vocab_lib

_BYTES_PER_SHARD = 16 << 20
_VOCAB_SAMPLE_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(manifest.Settings):
  """The options of the job; the flags of the command have the same names."""

  input: str
  output_dir: str
  vocab: str | None = None
  jobs: int | None = None

  def path(self, name: str) -> str:
    return os.path.join(self.output_dir, name)


def prepare(options: Options, console: rich_console.Console) -> dict[str, Any]:
  """Makes the shards that are missing; returns the manifest."""
  if not options.learn_vocab:
    vocab_lib.Vocabulary.load(options.vocab)  # Reading the text takes longer.
  with messages.during("checking the text", console):
    texts = [text_files.check(path) for path in text_files.match(options.input)]
  vocabulary = _vocabulary(options, texts, console)
  if options.fresh_masks:
    token_records.check_vocabulary(len(vocabulary))
  lines = sum(text.lines for text in texts)
  if (options.num_shards or 1) > lines:
    raise errors.UsageError(
      f"num_shards is {options.num_shards}, but the text has {lines} lines; "
      "ask for fewer."
    )
  size = sum(text.size for text in texts)
  total = options.num_shards or -(-size // _BYTES_PER_SHARD)
  options = dataclasses.replace(
    options,
    num_shards=total,
    max_predictions_per_seq=manifest.max_predictions(
      options.seq_length, options.masking_rate, options.max_predictions_per_seq
    ),
  )
  inputs = [
    {"name": os.path.basename(t.path), "bytes": t.size, "crc32": t.crc32}
    for t in texts
  ]
  done: dict[str, dict[str, Any]] = {}

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
    missing = manifest.missing_shards(options.output_dir, found)
    for shard in missing:
      del done[shard]
    for shard, facts in done.items():
      manifest.check_unchanged(facts, options.path(shard))
    if missing:
      lost = f"{len(missing)} of the finished shards are no longer there"
      console.print(f"{lost}: making them again.")
    elif name == manifest.FILE_NAME:
      console.print(
        f"{options.output_dir} is already finished; there is nothing to do."
      )
      return found
    break
  else:  # Whatever is there is not this job's.
    names = map(options.shard_name, range(total))
    files.refuse_existing(map(options.path, names))
    path = files.as_path(options.path("vocab.txt"))
    if path.exists() and vocab_lib.Vocabulary.load(path) != vocabulary:
      files.refuse_existing([path])

  if not done:
    with messages.during("checking the vocabulary", console, announce=False):
      # TensorFlow takes seconds to import.
      from swe_tf.data.text import coverage
      from swe_tf.data.text import tokenizers

      tokenizer = tokenizers.WordPieceTokenizer(vocabulary, options.lower_case)
      warnings = coverage.check_files(tokenizer, [text.path for text in texts])
    for warning in warnings:
      console.print(f"WARNING: {warning}", soft_wrap=True)
  # The journal comes first: it marks whatever follows as this job's.
  journal = options.path(manifest.JOURNAL_NAME)
  files.write_json(journal, content())
  for vocab_path in (options.path("vocab.txt"), options.vocab):
    if vocab_path and not files.as_path(vocab_path).exists():
      text = "".join(f"{token}\n" for token in vocabulary.tokens)
      files.write_text(vocab_path, text)
  for name in ("pretrain-", manifest.JOURNAL_NAME):
    # This job's, from when it was killed.
    for leftover in files.as_path(options.output_dir).glob(f"{name}*.partial"):
      leftover.rmtree()

  todo = {i for i in range(total) if options.shard_name(i) not in done}
  shards = _write_shards(options, vocabulary, texts, todo)
  columns = rich_progress.Progress.get_default_columns()
  rate = rich_progress.TextColumn("{task.fields[rate]}")
  with (
    rich_progress.Progress(
      *columns, rate, console=console, disable=not console.is_terminal
    ) as progress,
    messages.during("writing shards", console),
  ):
    bar = progress.add_task(
      "writing shards", total=total, completed=len(done), rate=""
    )
    start, tokens = time.monotonic(), 0
    for index, counts in shards:
      done[options.shard_name(index)] = counts
      files.write_json(journal, content())
      tokens += counts["tokens"]
      speed = tokens / (time.monotonic() - start)
      progress.update(bar, advance=1, rate=f"{speed:,.0f} tokens/s")
  if not content()["splits"]["train"].get("predictions"):
    raise errors.UsageError(
      f"{options.input} has no token to predict; is it the vocabulary of this "
      "text?"
    )
  files.write_json(options.path(manifest.FILE_NAME), content())
  files.as_path(journal).unlink()
  return content()


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
  with messages.during("learning the vocabulary", console):
    return vocab_lib.learn_wordpieces(
      lines, options.learn_vocab, options.lower_case
    )


def _write_shards(options, vocabulary, texts, todo):
  """Writes shards in threads; yields each one's number, counts and all."""
  from swe_tf.data.prepare import shards  # TensorFlow takes seconds.

  writer = shards.ShardWriter(options, vocabulary, options.output_dir)
  # Text is read in order, also that of shards which exist: to seek would not
  # work in a compressed file.
  blocks = enumerate(text_files.read_blocks(texts, options.num_shards))
  missing = (block for block in blocks if block[0] in todo)
  jobs = options.jobs or os.cpu_count() or 1
  # Threads will do: nearly all of the work is in TensorFlow's ops.
  pool = futures.ThreadPoolExecutor(jobs)
  try:
    running: set[futures.Future[Any]] = set()
    for index, text in missing:
      running.add(
        pool.submit(lambda i, t: (i, writer.write(i, t)), index, text)
      )
      # Blocks are large: read ahead just enough to keep all threads busy.
      while len(running) >= 2 * jobs:
        finished, running = futures.wait(
          running, return_when=futures.FIRST_COMPLETED
        )
        yield from (future.result() for future in finished)
    for future in futures.as_completed(running):
      yield future.result()
  finally:
    pool.shutdown(cancel_futures=True)
