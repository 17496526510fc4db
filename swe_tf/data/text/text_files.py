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


def match(patterns: str | Sequence[str]) -> list[str]:
  """Returns the files that match paths or globs, sorted.

  Args:
    patterns: The paths or globs; one string may hold several, with commas.

  Raises:
    UsageError: If one of them matches no file.
  """
  sources = [patterns] if isinstance(patterns, str) else patterns
  parts = [part.strip() for each in sources for part in each.split(",")]
  paths = set()
  for pattern in filter(None, parts):
    if not files.is_url(pattern):
      # A file's own name may have brackets.
      found = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
      found = [path for path in found if not os.path.isdir(path)]
    else:
      import tensorflow as tf

      try:
        found = tf.io.gfile.glob(pattern)
      except tf.errors.OpError as error:
        reason = errors.first_line(error)
        raise errors.UsageError(f"cannot read {pattern}: {reason}.") from error
    if not found:
      raise errors.UsageError(
        f"{pattern} does not match any files; check the path."
      )
    paths.update(found)
  if not any(parts):
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
        # The decoder kept the start of a character from the chunk before.
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
    # A document ends with its file, even without a newline.
    block.append(b"\n\n")
  while index < count:
    yield b"".join(block)
    block = []
    index += 1
