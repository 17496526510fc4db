"""Finds and checks text files, and splits them into blocks of lines.

Reads UTF-8, plain or .gz.
"""

from collections.abc import Iterator, Sequence
import contextlib
import glob
import gzip
import itertools
import os
from typing import IO, NamedTuple, cast
import zlib

from swe_tf import errors
from swe_tf import files

# How much is checked before training; `swe prepare` reads everything.
PEEK_BYTES = 1 << 20
_LINES_PER_CHUNK = 1 << 12


class TextFile(NamedTuple):
  """A text file that was read and is sound; sizes are those of its text."""

  path: str
  size: int
  lines: int
  crc32: int  # Shows if the file changes.


def are_records(paths: str | Sequence[str]) -> bool:
  """Whether paths or patterns are TFRecords: have `tfrecord` in their names."""
  paths = paths.split(",") if isinstance(paths, str) else paths
  kinds = {"tfrecord" in os.path.basename(path) for path in paths}
  if len(kinds) > 1:
    raise errors.UsageError(
      f"input_path ({', '.join(paths)}) has text files and TFRecords; give one "
      "kind only."
    )
  return kinds == {True}


def read_lines(path):
  import tensorflow as tf

  is_gzip = tf.strings.regex_full_match(path, r".*\.gz")
  return tf.data.TextLineDataset(path, tf.where(is_gzip, "GZIP", ""))


@contextlib.contextmanager
def open_text(path: str) -> Iterator[IO[bytes]]:
  """Opens a file as bytes; .gz is decompressed."""
  try:
    with files.open_binary(path) as raw:
      is_gzip = path.endswith(".gz")
      yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_gzip else raw
  except (EOFError, zlib.error) as error:  # A gzip file that is cut or broken.
    raise errors.UsageError(f"cannot read {path}: {error}.") from error


def match(patterns: str | Sequence[str]) -> list[str]:
  """Returns the files that match paths or globs, also with commas; sorted."""
  parts = files.split(patterns)
  paths = set()
  for pattern in parts:
    if not files.is_url(pattern):
      # A file's own name may have brackets.
      found = [pattern] if os.path.exists(pattern) else glob.glob(pattern)
      found = [path for path in found if not os.path.isdir(path)]
      for path in found:
        files.check_regular(path)
    else:
      import tensorflow as tf

      try:
        found = tf.io.gfile.glob(pattern)
      except tf.errors.OpError as error:
        reason = errors.first_line(error)
        raise errors.UsageError(f"cannot read {pattern}: {reason}.") from error
    if not found:
      what = f"{pattern} does not match any files; check the path."
      raise errors.UsageError(what)
    paths.update(found)
  if not parts:
    raise errors.UsageError("no input is given; name a file or a pattern.")
  return sorted(paths)


def check(path: str, max_bytes: float = float("inf")) -> TextFile:
  """Checks a file, or about its first `max_bytes`: UTF-8 text, not blank."""
  size = lines = crc32 = 0
  blank = True
  with open_text(path) as f:
    while size < max_bytes:
      # Whole lines, which a character never crosses.
      chunk = b"".join(itertools.islice(f, _LINES_PER_CHUNK))
      if not chunk:
        break
      if b"\0" in chunk:
        raise errors.UsageError(
          f"{path} is a binary file (byte 0 at {size + chunk.index(0)}); give "
          "text."
        )
      try:
        chunk.decode("utf-8")
      except UnicodeDecodeError as error:
        line = lines + chunk.count(b"\n", 0, error.start) + 1
        raise errors.UsageError(
          f"{path} is not UTF-8 (line {line}, byte {size + error.start}); "
          "convert it, for instance with iconv."
        ) from None
      size += len(chunk)
      lines += chunk.count(b"\n")
      crc32 = zlib.crc32(chunk, crc32)
      blank = blank and not chunk.strip()
  if blank:
    raise errors.UsageError(f"{path} holds no text; leave it out.")
  return TextFile(path, size, lines + 1, crc32)


def read_blocks(texts: Sequence[TextFile], count: int) -> Iterator[bytes]:
  """Yields the text in `count` blocks, a blank line between files.

  Block i has the lines that start in the i-th part of the text.
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
