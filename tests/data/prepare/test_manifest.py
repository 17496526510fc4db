"""One manifest for all prepared data."""

import pytest

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import prepared_data


@pytest.mark.parametrize("scheme", ["", "ram://"])
def test_splits(tmp_path, scheme):
  directory = files.as_path(f"{scheme}{tmp_path}" if scheme else tmp_path)
  splits = {
    "train": {"file": "train.tf_record", "size": 7},
    "dev": {"file": "dev.tf_record", "size": 3, "labelled": False},
  }
  content = manifest.make(manifest.GLUE, task="SST-2", splits=splits)
  files.write_json(directory / manifest.FILE_NAME, content)
  files.write_text(directory / "train.tf_record", "")
  with pytest.raises(errors.UsageError, match="dev.tf_record is not there"):
    prepared_data.read_prepared_data(directory)
  files.write_text(directory / "dev.tf_record", "")
  data = prepared_data.read_prepared_data(str(directory))
  assert data.meta == content and not data.is_squad
  assert data.path == directory / manifest.FILE_NAME
  assert data.train == prepared_data.Split(
    "train", str(directory / "train.tf_record"), 7, True
  )
  assert [split.labelled for split in data.splits_of("dev")] == [False]


@pytest.mark.parametrize(
  "content, message",
  [
    (None, "has no manifest.json of GLUE or SQuAD"),
    (manifest.make("pretraining", splits={}), "has no manifest.json of GLUE"),
    ({"kind": "glue", "format_version": 3}, "format_version is not 2; prepare"),
    (manifest.make("glue", splits={"dev": {}}), "its splits are not"),
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
