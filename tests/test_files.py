"""Files: whole or absent, faults in one line, on a disk and at a URL."""

import itertools
import os
import pathlib
import stat
import subprocess
import sys

import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files

_NUMBERS = itertools.count()


@pytest.fixture(name="root", params=["local", "file", "ram"])
def fixture_root(request, tmp_path):
  """A directory that is not there yet: on a disk, or in memory."""
  if request.param == "ram":
    return files.as_path(f"ram://bucket{next(_NUMBERS)}/new")
  start = "file://" if request.param == "file" else ""
  return files.as_path(f"{start}{tmp_path}/new")


def _names(directory):
  return sorted(path.name.rstrip("/") for path in directory.iterdir())


def test_what_is_written_is_read(root):
  path = root / "deep" / "file"
  files.write_bytes(path, b"\xef\xbb\xbfa\r\n\xc3\xa9")
  assert files.read_bytes(str(path)) == b"\xef\xbb\xbfa\r\n\xc3\xa9"
  assert files.read_text(path) == "a\r\né"
  files.write_text(path, "a: !!python/tuple [1, é]\n")
  assert yaml_files.read(path) == {"a": [1, "é"]}
  files.write_json(path, {"a": ["é", 1.5]})
  assert files.read_json(path) == {"a": ["é", 1.5]}
  assert _names(path.parent) == ["file"]
  assert str(path).startswith(str(root))


def test_complete_or_absent(root):
  path = root / "out.txt"
  with files.complete_or_absent(path) as scratch:
    pathlib.Path(scratch).write_text("first")
    assert not path.exists()
  for error in (KeyboardInterrupt, ValueError):
    with pytest.raises(error), files.complete_or_absent(path) as scratch:
      pathlib.Path(scratch).write_text("second")
      raise error
    assert not os.path.exists(scratch)
  with pytest.raises(ValueError, match="not JSON compliant"):
    files.write_json(path, float("nan"))
  assert files.read_text(path) == "first"
  assert _names(root) == ["out.txt"]


def test_new_directory(root):
  with pytest.raises(KeyboardInterrupt), files.new_directory(root) as scratch:
    (scratch / "a").write_text("a")
    raise KeyboardInterrupt
  assert not scratch.exists() and not root.exists()
  with files.new_directory(root) as scratch:
    (scratch / "sub").mkdir()
    (scratch / "sub" / "b").write_text("b")
    (scratch / "manifest.json").write_text("{}")
    assert not root.exists()
  assert _names(root) == ["manifest.json", "sub"]
  assert files.read_text(root / "sub" / "b") == "b"
  assert not scratch.exists()
  with pytest.raises(errors.UsageError, match="new is already there"):
    with files.new_directory(root):
      pass


def test_files_are_lent(root):
  files.write_text(root / "a" / "x.txt", "a")
  with files.local_copy(root / "a" / "x.txt") as copy:
    assert pathlib.Path(copy).read_text() == "a"
  assert os.path.exists(copy) == (not files.is_url(root))
  assert root.resolve() == root and (root / "a").relative_to(root).name == "a"


def test_urls_keep_their_slashes(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for text in ("file:///a/b", "ram://a/b", "gs://a/b"):
    path = files.as_path(text)
    assert str(path) == os.fspath(path) == text
    assert str(path.parent / "c") == text.replace("b", "c")
  files.write_text("ram://top.txt", "")  # Its directory is ram:// itself.
  assert not list(tmp_path.iterdir())


def test_a_failed_copy_leaves_no_directory(monkeypatch):
  root = files.as_path("ram://failed/new")
  copied = []

  def copy(source, target, overwrite):
    assert overwrite
    copied.append(pathlib.Path(source).name)
    if copied[-1] == "manifest.json":
      raise tf.errors.PermissionDeniedError(None, None, "no.\nAt all.")
    files.as_path(target).write_bytes(pathlib.Path(source).read_bytes())

  monkeypatch.setattr(tf.io.gfile, "copy", copy)
  with pytest.raises(errors.UsageError, match="cannot write ram.*: no; choose"):
    with files.new_directory(root) as scratch:
      for name in ("a", "manifest.json", "z"):
        (scratch / name).write_text(name)
  assert copied == ["a", "z", "manifest.json"]  # It vouches for the others.
  assert not root.exists()


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600)])
def test_outputs_are_as_public_as_the_umask_says(tmp_path, umask, mode):
  before = os.umask(umask)
  try:
    files.write_text(tmp_path / "file", "")
    with files.new_directory(tmp_path / "directory"):
      pass
  finally:
    os.umask(before)
  for name, expected in {"file": mode, "directory": 0o777 & ~umask}.items():
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == expected


_NINES = (f"b{i}: &b{i} [{', '.join([f'*b{i - 1}'] * 9)}]" for i in range(1, 9))
_BOMB = "\n".join(["b0: &b0 x", *_NINES]).encode()


@pytest.mark.parametrize(
  "read, content, message",
  [
    (files.read_bytes, None, "cannot read .*file: No such file or directory"),
    (files.read_text, b"a\n\xff", r"file:2: byte 0xff is not UTF-8"),
    (files.read_json, b'{\n"a"', r"file:2: not JSON \("),
    (yaml_files.read, b"a:\n- [1", r"file:2: not YAML \("),
    (yaml_files.read, b"a: \x07", r"file:1: not YAML \("),
    (yaml_files.read, b"a: 1\nb: 2\na: 3", "file:3: .*'a' is there twice"),
    (yaml_files.read, b"a: &a [*a]", "alias stands for what it is part of"),
    (yaml_files.read, b"a: " + b"[" * 10**4, "not YAML .*recursion"),
    (yaml_files.read, _BOMB, "aliases make more than 100,000 values"),
    (yaml_files.read, b"a: !!bool x", r"file: not YAML \("),
  ],
)
def test_faults_are_one_line(root, read, content, message):
  if content is not None:
    files.write_bytes(root / "file", content)
  with pytest.raises(errors.UsageError, match=message) as caught:
    read(root / "file")
  assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_outputs_that_cannot_be(tmp_path):
  (tmp_path / "file").write_text("")
  for write in (files.complete_or_absent, files.new_directory):
    with pytest.raises(errors.UsageError, match="cannot write .*file/x.*;"):
      with write(tmp_path / "file" / "x"):
        pass
  with pytest.raises(errors.UsageError, match="cannot read nosuch://a: File"):
    files.read_bytes("nosuch://a")


def test_local_files_need_no_tensorflow(tmp_path):
  script = f"""
from swe_tf import files, yaml_files
import sys
with files.new_directory({str(tmp_path / "new")!r}) as scratch:
  files.write_json(scratch / "a.json", [1])
assert yaml_files.read({str(tmp_path / "new" / "a.json")!r}) == [1]
assert "tensorflow" not in sys.modules
"""
  subprocess.run([sys.executable, "-c", script], check=True)
