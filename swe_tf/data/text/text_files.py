"""Finds and checks text files, and splits them into blocks of lines.

Reads UTF-8, plain or .gz, and TFRecords with one document per record, on this
machine or anywhere that TensorFlow can open. One shard is made from one block.
`packing` splits lines into documents.
"""

import codecs
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import glob
import gzip
import os
from typing import IO, cast
import zlib

from swe_tf import errors
from swe_tf import files

# How much is checked before training; `swe prepare` reads everything.
PEEK_BYTES = 1 << 20
_CHUNK_BYTES = 1 << 22


@dataclasses.dataclass(frozen=True)
class TextFile:
  """A text file that was read and is sound.

  Attributes:
    path: Its path.
    size: The number of bytes, decompressed.
    lines: The number of lines.
    crc32: The checksum of these bytes, which shows if the file changes.
  """

  path: str
  size: int
  lines: int
  crc32: int


@contextlib.contextmanager
def open_text(path: str) -> Iterator[IO[bytes]]:
  """Opens a file as bytes; .gz is decompressed, records become lines."""
  if "tfrecord" in os.path.basename(path):
    from swe_tf.data.text import text_records

    with text_records.open_text(path) as records:
      yield records
    return
  try:
    with files.open_binary(path) as raw:
      is_gzip = path.endswith(".gz")
      yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_gzip else raw
  except (EOFError, zlib.error) as error:  # A gzip file that is cut or broken.
    raise errors.UsageError(f"cannot read {path}: {error}.") from error


def match(patterns: str) -> list[str]:
  """Returns the files that match comma-separated paths or globs, sorted."""
  paths = set()
  for pattern in filter(None, map(str.strip, patterns.split(","))):
    if files.is_url(pattern):
      import tensorflow as tf

      found = tf.io.gfile.glob(pattern)
    else:
      found = [p for p in glob.glob(pattern) if not os.path.isdir(p)]
    if not found:
      raise errors.UsageError(f"no file matches {pattern!r}; check the path.")
    paths.update(found)
  if not paths:
    raise errors.UsageError("no input is given; name a file or a pattern.")
  return sorted(paths)


def check(path: str, max_bytes: int | None = None) -> TextFile:
  """Checks a text file, or its first `max_bytes`.

  Raises:
    UsageError: If the file cannot be read, is blank, binary or not UTF-8.
  """
  size = lines = crc32 = 0
  blank = True
  decoder = codecs.getincrementaldecoder("utf-8")()
  with open_text(path) as f:
    while max_bytes is None or size < max_bytes:
      chunk = f.read(min(_CHUNK_BYTES, max_bytes or _CHUNK_BYTES))
      if b"\0" in chunk:
        raise errors.UsageError(
          f"{path} is a binary file (byte 0 at "
          f"{size + chunk.index(0)}); give text, or TFRecords with tfrecord in "
          "their names."
        )
      try:
        decoder.decode(chunk, final=not chunk)
      except UnicodeDecodeError as error:
        pending = len(error.object) - len(chunk)
        line = lines + chunk.count(b"\n", 0, error.start) + 1
        raise errors.UsageError(
          f"{path} is not UTF-8 (line {line}, byte "
          f"{size + error.start - pending}); convert it, for instance with "
          "iconv."
        ) from None
      if not chunk:
        break
      size += len(chunk)
      lines += chunk.count(b"\n")
      crc32 = zlib.crc32(chunk, crc32)
      blank = blank and not chunk.strip()
  if blank:
    raise errors.UsageError(f"{path} holds no text; leave it out.")
  return TextFile(path, size, lines + 1, crc32)


def read_blocks(texts: Sequence[TextFile], count: int) -> Iterator[bytes]:
  """Yields the text of the files in `count` blocks of about the same size.

  Block i has the lines that start in the i-th part of the text, so it depends
  only on the files and `count`. Files are separated by a blank line.
  """
  total = sum(text.size for text in texts)
  offset = index = 0
  block: list[bytes] = []
  for text in texts:
    with open_text(text.path) as f:
      for line in f:
        while offset * count >= total * (index + 1):
          yield b"".join(block)
          block = []
          index += 1
        block.append(line)
        offset += len(line)
    block.append(b"\n\n")
  while index < count:
    yield b"".join(block)
    block = []
    index += 1


def read_block(texts: Sequence[TextFile], count: int, index: int) -> bytes:
  """Returns one of the blocks of `read_blocks`, without reading the others.

  For a worker that makes a single shard. Plain files are read from where the
  block begins, .gz and records from their beginning.
  """
  total = sum(text.size for text in texts)
  first, end = (-(-total * i // count) for i in (index, index + 1))
  block: list[bytes] = []
  start = 0
  for text in texts:
    if start < end and first < start + text.size:
      with open_text(text.path) as f:
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
              "command again."
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
  while count and (chunk := file.read(min(count, _CHUNK_BYTES))):
    count -= len(chunk)
