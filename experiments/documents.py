"""Converts corpora to plain text, with a blank line after each document.

    python -m experiments.documents --output=FILE.txt.gz PATTERN...

Reads what wikiextractor writes with --json (one JSON object per line, with
`text`), books in Markdown, and Project Gutenberg's text files. In a book the
front matter, the licence around the text, heading marks and rules are left out;
the lines of a paragraph are joined, since a line is a segment. `swe prepare
pretraining` reads the result.
"""

import argparse
from collections.abc import Iterator, Sequence
import glob
import gzip
import json
import pathlib
import re

from swe_tf import errors
from swe_tf import files

# Between rules, or headings with a rule under them.
_FRONT_MATTER = re.compile(
  r"\A(---\n.*?\n---\n|(#[^\n]*\n\s*)+-{3,}\n)", re.DOTALL
)
_GUTENBERG = re.compile(
  r"\*\*\* ?START OF.*?\*\*\*(.*?)\*\*\* ?END OF", re.DOTALL
)
_RULE = re.compile(r"[-*_=\s]{3,}")


def paragraphs(book: str) -> Iterator[str]:
  r"""Yields the paragraphs of a book, one line each.

  >>> list(paragraphs("---\ntitle: T\n---\n# One\n\nIt\nwas.\n\n***\n\n*So.*"))
  ['One', 'It was.', 'So.']
  """
  inside = _GUTENBERG.search(book)
  text = inside[1] if inside else _FRONT_MATTER.sub("", book)
  for paragraph in re.split(r"\n\s*\n", text):
    line = " ".join(paragraph.split())
    if line and not _RULE.fullmatch(line):
      line = re.sub(r"^(#+|>)\s*", "", line)
      yield re.sub(r"(\*+|_+)(?=\S)(.+?)(?<=\S)\1", r"\2", line)


def documents(path: str) -> Iterator[str]:
  """Yields the documents of a file.

  Raises:
    UsageError: If a line is not JSON, or has no text.
  """
  content = files.read_text(path)
  if not content.lstrip().startswith("{"):
    yield "\n".join(paragraphs(content))
    return
  for number, line in enumerate(content.splitlines(), start=1):
    try:
      text = json.loads(line)["text"]
    except (ValueError, KeyError, TypeError) as error:
      raise errors.UsageError(
        f"{path}:{number}: no JSON object with `text`: {error}."
      ) from error
    if text.strip():
      yield "\n".join(filter(str.strip, text.splitlines()))


def main(argv: Sequence[str] | None = None) -> None:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--output", required=True, help="a new text file")
  parser.add_argument("patterns", nargs="+", help="files to read")
  flags = parser.parse_args(argv)
  paths = sorted(path for each in flags.patterns for path in glob.glob(each))
  if not paths:
    parser.error(f"no file matches {' '.join(flags.patterns)}")
  output = pathlib.Path(flags.output)
  if output.exists():
    parser.error(f"--output={output} exists; name a new file")
  count = 0
  with files.complete_or_absent(output) as scratch:
    opened = gzip.open if output.suffix == ".gz" else open
    with opened(scratch, "wt", encoding="utf-8") as file:
      for path in paths:
        for document in documents(path):
          file.write(document + "\n\n")
          count += 1
  print(f"{count:,} documents of {len(paths):,} files in {output}")


if __name__ == "__main__":
  main()
