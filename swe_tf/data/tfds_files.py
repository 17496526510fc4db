"""GLUE and SQuAD from TensorFlow Datasets, as files like the official ones.

So that everything after it, the checks included, is the same for both. TFDS
downloads the data, unless it has done so before.
"""

from collections.abc import Iterable, Mapping
import json
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks

# One and the same split.
_OFFICIAL, _TFDS = "dev", "validation"


def write_glue_files(
  name: str, task: glue_tasks.GlueTask, directory: pathlib.Path
) -> None:
  """Writes a JSON lines file for every split of a TFDS data set.

  Args:
    name: Such as `glue/sst2`.
    task: The GLUE task that it is.
    directory: Where to write.

  Raises:
    UsageError: If TFDS cannot give the data, or it is another task's.
  """
  builder = _prepare(name)
  features = builder.info.features
  columns = {}
  for names in task.texts:
    found = [each for each in features if each.lower() in map(str.lower, names)]
    if not found:
      raise errors.UsageError(
        f"--tfds={name} has no {' or '.join(names)}, which {task.name} "
        f"needs, only {', '.join(features)}."
      )
    columns[found[0]] = names[0]

  def row(example):
    content = {
      column: example[each].decode("utf-8") for each, column in columns.items()
    }
    label = example["label"]
    if task.is_regression:
      content[task.label[0]] = str(label)
    elif label >= 0:  # Test sets have -1, which is no label.
      # The order of the classes is not ours; their names are, but for 0 and 1.
      label = (
        str(label)
        if task.labels == glue_tasks.BINARY_LABELS
        else features["label"].int2str(label)
      )
      content[task.label[0]] = label
    return json.dumps(content)

  for split in builder.info.splits:
    examples = sorted(_read(builder, split), key=lambda each: each["idx"])
    files.write_text(
      directory / f"{split.replace(_TFDS, _OFFICIAL)}.jsonl",
      "".join(row(example) + "\n" for example in examples),
    )


def write_squad_file(name: str, split: str, path: pathlib.Path) -> None:
  """Writes a split of a TFDS data set as SQuAD's JSON.

  Args:
    name: `squad/v1.1` or `squad/v2.0`.
    split: `train` or `eval`.
    path: The file.

  Raises:
    UsageError: If TFDS cannot give the data.
  """
  examples = _read(_prepare(name), "train" if split == "train" else _TFDS)
  content = {
    "data": [
      {
        "title": example["title"].decode("utf-8"),
        "paragraphs": [
          {
            "context": example["context"].decode("utf-8"),
            "qas": [_question(example)],
          }
        ],
      }
      for example in examples
    ]
  }
  files.write_json(path, content)


def _question(example: Mapping[str, Any]) -> dict[str, Any]:
  answers = example["answers"]
  question = {
    "id": example["id"].decode("utf-8"),
    "question": example["question"].decode("utf-8"),
    "answers": [
      {"text": text.decode("utf-8"), "answer_start": int(start)}
      for text, start in zip(answers["text"], answers["answer_start"])
    ],
  }
  if "is_impossible" in example:
    question["is_impossible"] = bool(example["is_impossible"])
  return question


def _prepare(name: str):
  import tensorflow_datasets as tfds

  try:
    builder = tfds.builder(name)
    builder.download_and_prepare()
  except Exception as error:  # Whatever a network raises.
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raise errors.UsageError(
      f"--tfds={name}: {lines[0]}; give the official files instead if this "
      "machine is offline."
    ) from error
  return builder


def _read(builder, split: str) -> Iterable[Mapping[str, Any]]:
  dataset = builder.as_dataset(split=split, shuffle_files=False)
  return dataset.as_numpy_iterator()
