"""The identity of a set of files: is this the same data as then?

It is stored with what was made from the data, and compared before more is made.
Imports no TensorFlow, except for URLs.
"""

from collections.abc import Iterable
from concurrent import futures
import hashlib
import os

from swe_tf import files

# Enough to tell two files of the same size apart, whatever the file's size:
# the start and the end change if records are added, lost, cut or reordered.
_SAMPLE_BYTES = 1 << 16


def fingerprint(paths: Iterable[files.PathLike]) -> str:
  """Returns a digest of the names, sizes, starts and ends of files.

  The order does not matter, and names are relative to the directory that all
  files share: data that is moved or copied as a whole stays the same. Only the
  first and the last 64 kB of a file are read. A file that cannot be read is a
  `UsageError`.
  """
  names = sorted({os.fspath(path) for path in paths})
  shared = os.path.commonprefix(names).rfind("/") + 1
  digest = hashlib.sha256()
  # A store answers slowly, but many at a time.
  with futures.ThreadPoolExecutor(16) as pool:
    for name, content in zip(names, pool.map(_sample, names), strict=True):
      digest.update(f"{name[shared:]}\0".encode())
      digest.update(content)
  return digest.hexdigest()


def _sample(path: str) -> bytes:
  """Returns the digest of a file's size, its start and its end."""
  with files.open_binary(path) as file:
    size = file.seek(0, os.SEEK_END) or file.tell()  # GFile returns None.
    digest = hashlib.sha256(b"%d" % size)
    for start in sorted({0, max(0, size - _SAMPLE_BYTES)}):
      file.seek(start)
      digest.update(file.read(_SAMPLE_BYTES))
  return digest.digest()
