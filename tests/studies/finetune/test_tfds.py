"""Data from TFDS: with its real features, and examples made up here."""

import types

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from swe_tf import errors
from swe_tf.commands import prepare_squad
from swe_tf.data import tfds_files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import prepared_data
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import vocab as vocab_lib


@pytest.fixture(name="offer")
def fixture_offer(monkeypatch):
  """Makes `tfds.builder` give examples without a download."""
  real = tfds.builder

  def dataset(examples):
    specs = {
      key: tf.TensorSpec.from_tensor(tf.constant(value))
      for key, value in examples[0].items()
    }
    return tf.data.Dataset.from_generator(
      lambda: iter(examples), output_signature=specs
    )

  def offer(splits):
    def builder(name):
      features = real(name).info.features
      return types.SimpleNamespace(
        info=types.SimpleNamespace(features=features, splits=splits),
        download_and_prepare=lambda: None,
        as_dataset=lambda split, shuffle_files: dataset(splits[split]),
      )

    monkeypatch.setattr(tfds, "builder", builder)

  return offer


def test_classes_go_by_name_and_rows_by_index(offer, tmp_path):
  # In TFDS entailment is 0, neutral 1 and contradiction 2.
  examples = [
    {"premise": f"p{index}", "hypothesis": "h", "label": index, "idx": index}
    for index in (2, 0, 1)
  ]
  unlabelled = [each | {"label": -1} for each in examples]
  splits = {"train": examples, "validation_mismatched": examples}
  offer(splits | {"test_matched": unlabelled})
  task = glue_tasks.find_task("MNLI")
  tfds_files.write_glue_files("glue/mnli", task, tmp_path)
  train, dev, test = glue_examples.read_glue_directory(tmp_path, task)
  assert [each.texts[0] for each in train.examples] == ["p0", "p1", "p2"]
  labels = [task.labels[each.label] for each in train.examples]
  assert labels == ["entailment", "neutral", "contradiction"]
  assert dev.path.stem == "dev_mismatched"
  assert test.path.stem == "test_matched" and not test.labelled


@pytest.mark.parametrize(
  "name, tfds_name, texts, label",
  [
    ("SST-2", "glue/sst2", ("sentence",), 1),
    ("STS-B", "glue/stsb", ("sentence1", "sentence2"), 2.5),
    ("QNLI", "glue/qnli", ("question", "sentence"), 1),
  ],
)
def test_labels(offer, tmp_path, name, tfds_name, texts, label):
  offer(
    {"validation": [{**dict.fromkeys(texts, "a"), "label": label, "idx": 0}]}
  )
  task = glue_tasks.find_task(name)
  tfds_files.write_glue_files(tfds_name, task, tmp_path)
  (dev,) = glue_examples.read_glue_directory(tmp_path, task)
  assert dev.examples[0].label == label


def test_another_task_is_told(offer, tmp_path):
  offer({"train": [{"sentence": "fine", "label": 1, "idx": 0}]})
  task = glue_tasks.find_task("MNLI")
  with pytest.raises(errors.UsageError, match="has no .*premise.* MNLI needs"):
    tfds_files.write_glue_files("glue/sst2", task, tmp_path)


def test_squad_is_squad(monkeypatch, tmp_path):
  example = {
    "id": b"q1",
    "title": b"t",
    "context": b"Rhine and Elbe",
    "question": b"Which?",
    "is_impossible": False,
    "answers": {"text": [b"Elbe"], "answer_start": [10]},
  }
  none = example | {"id": b"q2", "is_impossible": True}
  none["answers"] = {"text": [], "answer_start": []}
  data = types.SimpleNamespace(as_numpy_iterator=lambda: iter([example, none]))
  builder = types.SimpleNamespace(
    download_and_prepare=lambda: None,
    as_dataset=lambda split, shuffle_files: data,
  )
  monkeypatch.setattr(tfds, "builder", lambda name: builder)
  path = tmp_path / "train.json"
  tfds_files.write_squad_file("squad/v2.0", "train", path)
  squad = squad_questions.read_squad_file(path, "2.0")
  squad_questions.check_convertible(squad, for_training=True)
  assert [each.id for each in squad.questions] == ["q1", "q2"]
  vocab = tmp_path / "vocab.txt"
  vocab.write_text("\n".join(vocab_lib.SPECIAL_TOKENS))
  prepare_squad.run(
    prepare_squad.Options(
      tfds="squad/v2.0",
      split="train",
      version="2.0",
      vocab=str(vocab),
      output_dir=str(tmp_path / "out"),
    )
  )
  prepared = prepared_data.read_prepared_data(tmp_path / "out")
  assert prepared.train.size == 2
  assert prepared.meta["splits"]["train"]["questions"] == 2


def test_no_network_is_one_line(monkeypatch, tmp_path):
  def fail(name):
    raise ConnectionError("no route\nto host")

  monkeypatch.setattr(tfds, "builder", fail)
  task = glue_tasks.find_task("SST-2")
  with pytest.raises(errors.UsageError, match="glue/sst2: no route; give"):
    tfds_files.write_glue_files("glue/sst2", task, tmp_path)
