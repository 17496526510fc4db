"""Outputs are complete or absent, whatever happens."""

import pathlib

import pytest

from swe_tf import errors
from swe_tf import files


def test_complete_or_absent(tmp_path):
  path = tmp_path / "new" / "out.txt"
  with files.complete_or_absent(path) as scratch:
    pathlib.Path(scratch).write_text("first")
    assert not path.exists()
  with pytest.raises(KeyboardInterrupt):
    with files.complete_or_absent(path) as scratch:
      pathlib.Path(scratch).write_text("second")
      raise KeyboardInterrupt
  assert path.read_text() == "first"
  assert list(path.parent.iterdir()) == [path]
  with pytest.raises(errors.UsageError, match="cannot write .*out.txt/x"):
    with files.complete_or_absent(path / "x"):
      pass


def test_only_usage_errors_are_one_line(capsys):
  @files.one_line_errors("swe test")
  def main(argv):
    raise argv[1]

  assert main(["", errors.UsageError("bad input.")]) == 1
  assert capsys.readouterr().err == "swe test: bad input.\n"
  with pytest.raises(ValueError, match="a bug"):
    main(["", ValueError("a bug")])
