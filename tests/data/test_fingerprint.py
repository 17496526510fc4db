"""A fingerprint changes with the data, and not with where the data is."""

import pytest

from swe_tf import errors
from swe_tf import files
from swe_tf import sameness


def test_fingerprint(tmp_path):
  def write(root, changes=None):
    long = b"0123456789" * 20_000
    content = {"a": long, "b/c": long + b"x", "b/d": b""} | (changes or {})
    for name, data in content.items():
      files.write_bytes(f"{root}/{name}", data)
    paths = [f"{root}/{name}" for name in content]
    same = sameness.fingerprint(reversed(paths))
    assert sameness.fingerprint(map(files.as_path, paths)) == same
    return same

  first = write(tmp_path)
  assert {write(tmp_path / "moved"), write("ram://moved/to/a")} == {first}
  changed = [
    write(tmp_path / str(number), changes)
    for number, changes in enumerate(
      (
        {"a": b"1123456789" * 20_000},
        {"b/c": b"0123456789" * 20_000},
        {"b/d": b"0"},
        {"e": b""},
      )
    )
  ]
  fewer = sameness.fingerprint([tmp_path / "a", tmp_path / "b/c"])
  assert len({first, fewer, *changed}) == 6
  with pytest.raises(errors.UsageError, match="cannot read .*nowhere"):
    sameness.fingerprint([tmp_path / "nowhere"])
