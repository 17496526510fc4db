r"""`swe prepare pretraining` as an Apache Beam pipeline.

    make venv-beam
    .venv-beam/bin/python examples/beam_prepare.py --input='wiki/*.txt' \
      --vocab=vocab.txt --output_dir=DIR --runner=DirectRunner \
      --direct_running_mode=multi_processing --direct_num_workers=4

Flags that are not in `FLAGS` are Beam's. A worker writes whole shards with the
code of the command, so the shards and the manifest are the same bytes. All
workers must reach the text and `--output_dir`; the vocabulary and the text are
checked where the program is started. Re-run it to resume.
"""

import argparse
from collections.abc import Sequence
import dataclasses
import functools
import os
from typing import IO

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import job
from swe_tf.data.prepare import manifest
from swe_tf.data.text import text_files
from swe_tf.data.text import vocab as vocab_lib

FLAGS = {
  "input": str,
  "vocab": str,
  "output_dir": str,
  "masking": str,
  "seq_length": int,
  "num_shards": int,
  "seed": int,
}


@dataclasses.dataclass(frozen=True)
class WriteShard:
  """Reads the text of a shard and writes the shard; runs on a worker."""

  settings: manifest.Settings
  vocabulary: vocab_lib.Vocabulary
  texts: tuple[text_files.TextFile, ...]
  output_dir: str

  def __call__(self, index: int) -> None:
    text = read_block(self.texts, self.settings.num_shards or 1, index)
    writer = _make_writer(self.settings, self.vocabulary, self.output_dir)
    # A pipeline returns nothing to its caller, so the counts go to a file.
    files.write_json(self.note(index), writer.write(index, text))

  def note(self, index: int) -> str:
    name = f"{self.settings.shard_name(index)}.json"
    return os.path.join(self.output_dir, name)


@functools.lru_cache(maxsize=1)  # It builds graphs, once in each process.
def _make_writer(*arguments):
  os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # As the command does.
  from swe_tf.data.prepare import shards

  return shards.ShardWriter(*arguments)


def run_pipeline(function, items, arguments: Sequence[str]) -> None:
  """Calls a function with each item, on the workers."""
  import apache_beam as beam
  from apache_beam.options import pipeline_options

  options = pipeline_options.PipelineOptions(list(arguments))
  with beam.Pipeline(options=options) as pipeline:
    _ = pipeline | beam.Create(items) | beam.Reshuffle() | beam.Map(function)


def make_write_shards(arguments: Sequence[str], run=run_pipeline):
  """Returns a `write_shards` for the job that runs a pipeline.

  Args:
    arguments: Beam's options, such as `--runner=DataflowRunner`.
    run: Calls a function with each item.
  """

  def write_shards(options, vocabulary, texts, todo):
    fields = dataclasses.fields(manifest.Settings)
    settings = {field.name: getattr(options, field.name) for field in fields}
    write = WriteShard(
      manifest.Settings(**settings),
      vocabulary,
      tuple(texts),
      options.output_dir,
    )
    # A pipeline that was killed has left notes of the shards that it finished.
    todo = sorted(todo)
    missing = [i for i in todo if not files.as_path(write.note(i)).exists()]
    run(write, missing, arguments)
    for index in todo:
      counts = files.read_json(write.note(index))
      files.as_path(write.note(index)).unlink()
      yield index, counts

  return write_shards


def read_block(
  texts: Sequence[text_files.TextFile], count: int, index: int
) -> bytes:
  """Returns one of `text_files.read_blocks` without reading the others.

  Plain files are read from where the block begins, .gz from its beginning.
  """
  total = sum(text.size for text in texts)
  first, end = (-(-total * i // count) for i in (index, index + 1))
  block: list[bytes] = []
  start = 0
  for text in texts:
    if start < end and first < start + text.size:
      with text_files.open_text(text.path) as f:
        offset = start
        if start < first:
          _skip(f, first - 1 - start)
          # The rest of the line that started in the block before, or a newline.
          offset = first - 1 + len(f.readline())
        while offset < min(end, start + text.size):
          line = f.readline()
          if not line:
            raise errors.UsageError(
              f"{text.path} became shorter after it was checked; run the "
              "program again."
            )
          block.append(line)
          offset += len(line)
          if offset == start + text.size:
            block.append(b"\n\n")
    start += text.size
  return b"".join(block)


def _skip(file: IO[bytes], count: int) -> None:
  if file.seekable():
    file.seek(count)
    return
  while count and (chunk := file.read(min(count, 1 << 22))):
    count -= len(chunk)


def main(argv: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  for name, kind in FLAGS.items():
    required = name in ("input", "vocab", "output_dir")
    parser.add_argument(
      f"--{name}", type=kind, default=argparse.SUPPRESS, required=required
    )
  flags, arguments = parser.parse_known_args(argv)
  job.prepare(
    job.Options(**vars(flags)),
    rich_console.Console(stderr=True),
    make_write_shards(arguments),
  )


if __name__ == "__main__":
  main()
