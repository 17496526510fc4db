"""Corpora to text: what is kept of a dump and of books."""

import gzip

import pytest

from experiments import documents
from swe_tf import errors

_MARKDOWN = """# Title: T

## Year: 1904

-------

## ACT ONE

_[A room.]_ It was
late, **very** late.

* * *

> The end_of it.
"""
_GUTENBERG = """The Project Gutenberg eBook of T
*** START OF THE PROJECT GUTENBERG EBOOK T ***

It was.

*** END OF THE PROJECT GUTENBERG EBOOK T ***
License
"""


@pytest.mark.parametrize(
  "book, lines",
  [
    (
      _MARKDOWN,
      ["ACT ONE", "[A room.] It was late, very late.", "The end_of it."],
    ),
    (_GUTENBERG, ["It was."]),
    ("Just text.\n\nMore.", ["Just text.", "More."]),
  ],
)
def test_what_is_kept_of_a_book(book, lines):
  assert list(documents.paragraphs(book)) == lines


def test_a_dump_and_books_become_one_text_file(tmp_path):
  (tmp_path / "wiki_00").write_text(
    '{"title": "A", "text": "A\\n\\nOne."}\n{"title": "B", "text": ""}\n'
  )
  (tmp_path / "wiki_01.md").write_text(_MARKDOWN)
  output = tmp_path / "text.txt.gz"
  arguments = [f"--output={output}", f"{tmp_path}/wiki_*"]
  documents.main(arguments)
  lines = gzip.open(output, "rt").read()
  assert lines.startswith("A\nOne.\n\nACT ONE\n")
  with pytest.raises(SystemExit):
    documents.main(arguments)
  assert gzip.open(output, "rt").read() == lines

  path = tmp_path / "wiki_00"
  path.write_text('{"text": "One."}\n{"title": "B"}\n')
  with pytest.raises(errors.UsageError, match="wiki_00:2: no JSON object"):
    list(documents.documents(str(path)))
