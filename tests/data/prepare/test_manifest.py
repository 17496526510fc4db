"""One manifest for all prepared data, and those of older versions."""

import pytest

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import prepared_data

_COMMON = {
  "vocab_size": 9,
  "vocab_sha256": "abc",
  "do_lower_case": True,
  "max_seq_length": 16,
}


@pytest.fixture(name="directory", params=["local", "ram"])
def fixture_directory(request, tmp_path):
  """A directory with records, on a disk and in memory."""
  name = f"ram://{tmp_path.name}" if request.param == "ram" else tmp_path
  for split in ("train", "eval", "dev"):
    files.write_text(files.as_path(name) / f"{split}.tf_record", "")
  return files.as_path(name)


def test_squad_of_version_1(directory):
  old = {
    "task": "squad_v1.1",
    "train_data_size": 7,
    "train_questions": 5,
    "train_dropped_questions": 1,
    **_COMMON,
  }
  files.write_json(directory / "meta.json", old)
  data = prepared_data.read_prepared_data(str(directory))
  assert data.path == directory / "meta.json"
  assert data.is_squad and data.task == "squad_v1.1"
  assert data.train == prepared_data.Split(
    "train", str(directory / "train.tf_record"), 7, True
  )
  new = {
    "kind": "squad",
    "format_version": 2,
    "task": "squad_v1.1",
    "train_data_size": 7,
    **_COMMON,
    "splits": {
      "train": {
        "file": "train.tf_record",
        "size": 7,
        "questions": 5,
        "dropped_questions": 1,
      }
    },
  }
  assert data.meta == new
  # The new file wins, so that a split can be added to an old directory.
  manifest.write(directory, new | {"max_seq_length": 8})
  data = prepared_data.read_prepared_data(directory)
  assert data.meta["max_seq_length"] == 8


def test_glue_of_version_1(directory):
  dev = {"file": "dev.tf_record", "size": 3, "labelled": False}
  old = {"task": "SST-2", **_COMMON, "splits": {"dev": dev}}
  files.write_json(directory / "meta.json", old)
  data = prepared_data.read_prepared_data(directory)
  assert data.meta == {"kind": "glue", "format_version": 2, **old}
  assert not data.is_squad and data.train is None
  assert [split.labelled for split in data.splits_of("dev")] == [False]
  (directory / "dev.tf_record").unlink()
  with pytest.raises(errors.UsageError, match="dev.tf_record is not there"):
    prepared_data.read_prepared_data(directory)


@pytest.mark.parametrize(
  "content, message",
  [
    (None, "has no manifest.json of GLUE or SQuAD"),
    ({"kind": "pretraining", "splits": {}}, "has no manifest.json of GLUE"),
    ({"kind": "glue", "format_version": 3}, "format_version 3 is newer"),
    ({"report": 1}, 'json:1: no "kind"; is it from `swe prepare`'),
    ([], 'json:1: no "kind"'),
  ],
)
def test_what_is_not_glue_or_squad(tmp_path, content, message):
  if content is not None:
    files.write_json(tmp_path / manifest.FILE_NAME, content)
  with pytest.raises(errors.UsageError, match=message) as caught:
    prepared_data.read_prepared_data(tmp_path)
  assert "\n" not in str(caught.value)
