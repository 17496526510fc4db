"""The directory of a report, in which only a report's files are overwritten."""

from collections.abc import Iterable, Mapping

from swe_tf import errors
from swe_tf import files

# Lists the files of the report, so that the next one may replace them.
MANIFEST = "report.json"


def check(output_dir: files.PathLike) -> list[str]:
  """Checks that a report may be written; writes nothing.

  Args:
    output_dir: The directory. It may be absent, empty, or hold a report.

  Returns:
    The files of an earlier report in it.

  Raises:
    UsageError: If it is not a directory, or holds files that no report wrote.
  """
  path = files.as_path(output_dir)
  if path.exists() and not path.is_dir():
    raise errors.UsageError(
      f"output_dir {path} is a file; name a directory for the report."
    )
  held = sorted(each.name for each in path.iterdir()) if path.exists() else []
  ours = []
  if MANIFEST in held:
    content = files.read_json(path / MANIFEST)
    if isinstance(content, dict) and content.get("made_by") == "swe report":
      ours = [MANIFEST, *content["files"]]
  foreign = [name for name in held if name not in ours]
  if foreign:
    raise errors.UsageError(
      f"output_dir {path} has files that no report wrote ({foreign[0]}"
      f"{f' and {len(foreign) - 1} more' if foreign[1:] else ''}); name a new "
      "directory, or one with an earlier report."
    )
  return [name for name in ours if name in held]


def write(output_dir: files.PathLike, contents: Mapping[str, bytes]) -> None:
  """Writes a report, in place of an earlier one if there is one.

  Args:
    output_dir: The directory.
    contents: The files by name.
  """
  path = files.as_path(output_dir)
  earlier = check(path)
  # Written first, so that an interrupted report can still be replaced.
  _write_manifest(path, {*contents, *earlier} - {MANIFEST})
  for name in earlier:
    if name != MANIFEST and name not in contents:
      (path / name).unlink()
  for name, content in contents.items():
    files.write_bytes(path / name, content)
  _write_manifest(path, contents)


def _write_manifest(path: files.Path, names: Iterable[str]) -> None:
  content = {"made_by": "swe report", "files": sorted(names)}
  files.write_json(path / MANIFEST, content)
