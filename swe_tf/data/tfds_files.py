"""The data sets of TensorFlow Datasets, as files.

GLUE and SQuAD are written in their official formats, so that everything that
follows, including the checks, is the same for both sources. TFDS downloads the
data unless it has done so before.
"""

import json
import pathlib

from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks

# Two names for the same split.
_OFFICIAL, _TFDS = "dev", "validation"


def write_glue_files(
  name: str, task: glue_tasks.GlueTask, directory: pathlib.Path
) -> None:
  """Writes a JSON lines file for every split of a set such as `glue/sst2`."""
  builder = _prepare(f"tfds={name}", name)
  features = builder.info.features
  columns = {}
  for names in task.texts:
    found = [each for each in features if each.lower() in map(str.lower, names)]
    if not found:
      raise errors.UsageError(
        f"tfds={name} has no {' or '.join(names)}, which {task.name} "
        f"needs, only {', '.join(features)}."
      )
    columns[found[0]] = names[0]

  # TFDS orders the classes differently, but names them as we do, except for 0
  # and 1.
  is_named = task.labels not in ((), glue_tasks.BINARY_LABELS)
  to_label = features["label"].int2str if is_named else str

  def row(example):
    content = {ours: example[key].decode() for key, ours in columns.items()}
    # Test sets have -1, which is not a label.
    if task.is_regression or example["label"] >= 0:
      content[task.label[0]] = to_label(example["label"])
    return json.dumps(content)

  for split in builder.info.splits:
    # TFDS shuffles what it prepares; a prediction is known by its row.
    examples = sorted(_read(builder, split), key=lambda each: each["idx"])
    files.write_text(
      directory / f"{split.replace(_TFDS, _OFFICIAL)}.jsonl",
      "".join(row(example) + "\n" for example in examples),
    )


def write_squad_file(name: str, split: str, path: files.PathLike) -> None:
  """Writes the split `train` or `eval` of a TFDS data set as SQuAD's JSON."""
  builder = _prepare(f"tfds={name}", name)
  articles = []
  for example in _read(builder, "train" if split == "train" else _TFDS):
    answers = example["answers"]
    question = {
      "id": example["id"].decode(),
      "question": example["question"].decode(),
      "answers": [
        {"text": text.decode(), "answer_start": int(start)}
        for text, start in zip(answers["text"], answers["answer_start"])
      ],
    }
    if "is_impossible" in example:
      question["is_impossible"] = bool(example["is_impossible"])
    paragraph = {"context": example["context"].decode(), "qas": [question]}
    articles.append(
      {"title": example["title"].decode(), "paragraphs": [paragraph]}
    )
  files.write_json(path, {"data": articles})


def files_of(name: str, split: str, data_dir: str = "") -> list[str]:
  """Returns the TFRecords of a split of a text set such as `wiki40b/en`.

  Args:
    name: The name of the data set.
    split: The name of the split.
    data_dir: Where TFDS keeps its data; empty for its default.
  """
  where = {"data_dir": data_dir} if data_dir else {}
  builder = _prepare(f"tfds_name={name}", name, **where)
  if split not in builder.info.splits:
    raise errors.UsageError(
      f"tfds_split ({split!r}) of {name} must be one of "
      f"{', '.join(builder.info.splits)}."
    )
  return [str(path) for path in builder.info.splits[split].filepaths]


def _prepare(place: str, name: str, **arguments):
  """Returns the builder of a data set; errors begin with `place`."""
  import tensorflow_datasets as tfds

  try:
    builder = tfds.builder(name, **arguments)
    builder.download_and_prepare()
  except Exception as error:  # A network can raise anything.
    lines = str(error).strip().splitlines() or [type(error).__name__]
    raise errors.UsageError(
      f"{place}: {lines[0]}; give files instead if this machine is offline."
    ) from error
  return builder


def _read(builder, split: str):
  dataset = builder.as_dataset(split=split, shuffle_files=False)
  return dataset.as_numpy_iterator()
