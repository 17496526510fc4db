"""English text found on every machine: the docstrings of the dependencies.

The corpus of the demo and of the laptop experiments. Source files are read,
never imported; nothing is downloaded. Good for comparing methods at a small
scale, but not for training a model that anybody should use.
"""

import ast
import collections
from collections.abc import Iterable, Iterator, Sequence
import hashlib
import importlib.util
import inspect
import itertools
import os
import pathlib
import re
import string
import sysconfig
import textwrap
from typing import NamedTuple
import warnings

from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib

PACKAGES = ("scipy", "pandas", "numpy", "sklearn", "matplotlib", "tensorflow")

_SKIPPED_FOLDERS = frozenset(
  ("tests", "test", "testing", "site-packages", "__pycache__", "_vendor")
)
_PROSE = str.maketrans("", "", f"{string.ascii_letters} ,.'")
# A literal that opens a file, or the body of a class or a function.
_DOCSTRING = re.compile(
  r'''(?:\A(?:\#[^\n]*\n|\s)*|:[ \t]*(?:\#[^\n]*)?\n\s*)
        ([rR]?"""(?:[^"\\]+|\\.|"(?!""))*""")''',
  re.DOTALL | re.VERBOSE,
)
# Interpreter sessions, literal blocks, directives, tables and underlines.
_NOT_PROSE = re.compile(r">>>|::$|^\s*(\.\. |[|+=~-]{3})", re.MULTILINE)


class CorpusPaths(NamedTuple):
  """The files of a corpus; the vocabulary is one of characters."""

  train: str
  validation: str
  vocab: str


def write_corpus(
  output_dir: str,
  max_bytes: int = 10_000_000,
  vocab_size: int = 69,
  packages: Sequence[str] = PACKAGES,
) -> CorpusPaths:
  """Writes the docstrings of the installed packages as a corpus.

  The same packages give the same files. Documents are in the order of their
  hashes: the text of all packages is mixed throughout, a larger corpus starts
  with the smaller one, and a document never moves from training to validation.
  All packages together have about 10 MB.
  """
  train: list[str] = []
  validation: list[str] = []
  size = 0
  digests = {
    hashlib.sha256(document.encode("utf-8")).digest(): document
    for document in documents(packages)
  }
  for digest, document in sorted(digests.items()):
    size += len(document.encode("utf-8")) + 1
    if size > max_bytes:
      break
    # By its own hash, so that it stays where it is when the corpus grows.
    is_validation = int.from_bytes(digest, "big") % 100 < 5
    (validation if is_validation else train).append(document)
  paths = CorpusPaths(
    *(os.path.join(output_dir, f"{name}.txt") for name in CorpusPaths._fields)
  )
  files.write_text(paths.train, "\n".join(train))
  files.write_text(paths.validation, "\n".join(validation))
  vocab = character_vocab(train, vocab_size)
  files.write_text(paths.vocab, "".join(f"{token}\n" for token in vocab))
  return paths


def character_vocab(texts: Iterable[str], size: int) -> list[str]:
  """Returns the special tokens and the most frequent lower-case characters."""
  characters = itertools.chain.from_iterable(map(str.lower, texts))
  counts = collections.Counter(characters)
  # White space is one token: the tokenizer turns it into single spaces.
  spaces = [char for char in counts if char.isspace()]
  counts[" "] = sum(counts.pop(char) for char in spaces)
  ranked = sorted(counts, key=lambda char: (-counts[char], char))
  specials = vocab_lib.SPECIAL_TOKENS
  return [*specials, *ranked[: size - len(specials)]]


def documents(packages: Sequence[str] = PACKAGES) -> Iterator[str]:
  """Yields the prose of every docstring, one paragraph per line, none twice."""
  folders = [sysconfig.get_path("stdlib")]
  for package in packages:
    spec = importlib.util.find_spec(package)
    if spec and spec.submodule_search_locations:
      folders.append(spec.submodule_search_locations[0])
  seen = set()
  for parent, inside, names in itertools.chain(*map(os.walk, folders)):
    inside[:] = sorted(set(inside) - _SKIPPED_FOLDERS)
    for name in sorted(names):
      if not name.endswith(".py"):
        continue
      for text in _texts(os.path.join(parent, name)):
        paragraphs = [p for p in dict.fromkeys(_prose(text)) if p not in seen]
        seen.update(paragraphs)
        if paragraphs:
          yield "".join(f"{paragraph}\n" for paragraph in paragraphs)


def _texts(path: str) -> Iterator[str]:
  source = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
  if path.endswith(os.path.join("pydoc_data", "topics.py")):
    topics = ast.parse(source).body[-1]
    assert isinstance(topics, ast.Assign | ast.AnnAssign) and topics.value
    yield from ast.literal_eval(topics.value).values()
    return
  # A regular expression finds the literals: parsing all of SciPy and TensorFlow
  # takes half a minute.
  for literal in _DOCSTRING.findall(source):
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # Other people's invalid escapes.
      try:
        text = ast.literal_eval(literal)
      except (SyntaxError, ValueError):
        continue
    yield inspect.cleandoc(text)


def _prose(text: str) -> Iterator[str]:
  """Yields the paragraphs that read as English, each on one line."""
  for paragraph in textwrap.dedent(text).split("\n\n"):
    line = " ".join(paragraph.split())
    if (
      len(line.split()) >= 8
      and line[-1] in ".!?"
      and not _NOT_PROSE.search(paragraph)
      and len(line.translate(_PROSE)) <= (1 - 0.85) * len(line)
    ):
      yield line
