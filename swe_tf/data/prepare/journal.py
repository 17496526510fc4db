"""The journal of an unfinished job: what is done, so that it can be resumed.

One line of JSON for the job, then one for each finished part. A line that was
cut off by a crash is ignored, and its part is done again. Other machines do not
write to this file: they leave a note beside it for every part.
"""

import json
import os
from typing import Any

from swe_tf import errors
from swe_tf import files


def note(journal: files.PathLike, part: str, result: Any) -> None:
  """Notes that a part is done, for the journal to collect."""
  files.write_json(f"{journal}.{part}.json", result)


class Journal:
  """A file that records the finished parts of one job.

  Attributes:
    done: The results of the finished parts by name.
  """

  def __init__(self, path: str, job: Any):
    """Opens the journal of a job, or starts one.

    Args:
      path: The file.
      job: A description of the job, as JSON. A different job's journal is
        refused.
    """
    self._path = path
    self.done: dict[str, Any] = {}
    job = json.loads(json.dumps(job))
    if files.as_path(path).exists():
      # What follows the last newline was cut off, or is empty.
      lines = files.read_text(path).split("\n")[:-1]
      entries = [json.loads(line) for line in lines]
      if entries and entries[0] != job:
        raise errors.UsageError(
          f"{os.path.dirname(path)} holds an unfinished job with other "
          "settings or inputs; use the same ones, remove the folder, or choose "
          "another."
        )
      self.done.update(entries[1:])
      self.collect()
    # Rewritten, so that nothing is appended to a line that was cut off.
    entries = [job, *self.done.items()]
    files.write_text(path, "".join(json.dumps(e) + "\n" for e in entries))

  def collect(self):
    """Adds the parts that other machines have noted."""
    prefix = f"{os.path.basename(self._path)}."
    for path in self._notes("json"):
      part = path.name.removeprefix(prefix).removesuffix(".json")
      self.done[part] = files.read_json(path)

  def _notes(self, suffix: str = "*") -> list[files.Path]:
    path = files.as_path(self._path)
    return list(path.parent.glob(f"{path.name}.*.{suffix}"))

  def add(self, part: str, result: Any):
    """Notes that a part is done."""
    with files.as_path(self._path).open("a") as f:
      f.write(json.dumps((part, result)) + "\n")
    self.done[part] = result

  def remove(self):
    """Removes the file and the notes: the whole job is done."""
    for path in self._notes():
      path.unlink()
    files.as_path(self._path).unlink()
