"""GLUE scores from files, against scikit-learn and scipy on plain arrays."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from swe_tf import errors
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import glue

_REFERENCE = {
  "accuracy": metrics.accuracy_score,
  "f1": metrics.f1_score,
  "matthews_corrcoef": metrics.matthews_corrcoef,
  "pearson": lambda a, b: stats.pearsonr(a, b)[0],
  "spearman": lambda a, b: stats.spearmanr(a, b)[0],
}


def _by_hand(labels, predictions):
  """R3 by the formula over the confusion matrix of three classes."""
  counts = np.zeros([3, 3])
  np.add.at(counts, (labels, predictions), 1)
  true, predicted, total = counts.sum(1), counts.sum(0), counts.sum()
  covariance = counts.trace() * total - true @ predicted
  return covariance / math.sqrt(
    (total**2 - predicted @ predicted) * (total**2 - true @ true)
  )


def _score_files(tmp_path, task, labels, predictions):
  """Writes a dev file and a prediction file, and scores them."""
  names = [*(columns[0] for columns in task.texts), task.label[0]]
  texts = ['a "text'] * len(task.texts)
  as_text = lambda label: (
    f"{label:.3f}" if task.is_regression else task.labels[label]
  )
  rows = [names, *([*texts, as_text(label)] for label in labels)]
  data, path = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("\n".join(map("\t".join, rows)))
  path.write_text(glue.format_predictions(dict(enumerate(predictions)), task))
  read = glue.read_predictions(path, task)
  glue_file = glue_examples.read_glue_file(data, task)
  return glue.evaluate(task, *glue.align(glue_file, read, path))


@pytest.mark.parametrize("name", glue_tasks.TASKS)
def test_random_predictions(tmp_path, name):
  task = glue_tasks.find_task(name)
  rng = np.random.default_rng(len(name))
  if task.is_regression:
    # Two digits make ties, which is what Spearman has to get right.
    labels, predictions = rng.uniform(0, 5, [2, 200]).round(1)
  else:
    labels, predictions = rng.integers(0, len(task.labels), [2, 200])
  scores = _score_files(tmp_path, task, labels, predictions)
  assert list(scores) == list(task.metrics)
  for metric, score in scores.items():
    assert score == pytest.approx(
      100 * _REFERENCE[metric](labels, predictions), abs=1e-6
    )
  if name == "AX":
    assert scores["matthews_corrcoef"] == pytest.approx(
      100 * _by_hand(labels, predictions)
    )


@pytest.mark.parametrize(
  "name, scores",
  [
    ("CoLA", {"matthews_corrcoef": 0.0}),
    ("AX", {"matthews_corrcoef": 0.0}),
    ("SST-2", {"accuracy": 50.0}),
    ("QQP", {"f1": 0.0, "accuracy": 50.0}),
    # A constant has no correlation.
    ("STS-B", {"pearson": math.nan, "spearman": math.nan}),
  ],
)
def test_constant_predictions(tmp_path, name, scores):
  task = glue_tasks.find_task(name)
  found = _score_files(tmp_path, task, [0, 1] * 4, [0] * 8)
  assert found == pytest.approx(scores, nan_ok=True)


def test_scores_are_moved_into_the_range_of_the_labels():
  task = glue_tasks.find_task("STS-B")
  text = glue.format_predictions({1: 5.2, 0: -0.1}, task)
  assert text == "index\tprediction\n0\t0.000\n1\t5.000\n"
  with pytest.raises(ValueError, match="nan"):
    glue.format_predictions({0: math.nan}, task)


@pytest.mark.parametrize(
  "content, message",
  [
    ("prediction\tindex\n0\t1\n", r":1: the header is"),
    ("index\tprediction\n0\t1\n0\t1\n", r":3: index 0 occurs twice"),
    ("index\tprediction\n0\t2\n", r":2: label '2' is not one of 0, 1"),
    ("index\tprediction\n-1\t1\n", r":2: '-1\\t1' is not a row number"),
    ("index\tprediction\n0\t1\n", "no prediction for 1 of the 2 rows"),
    ("index\tprediction\n0\t1\n1\t1\n2\t1\n", "index 2, but .* 2 rows"),
  ],
)
def test_faults_in_predictions(tmp_path, content, message):
  task = glue_tasks.find_task("SST-2")
  data, path = tmp_path / "dev.tsv", tmp_path / "predictions.tsv"
  data.write_text("sentence\tlabel\na\t0\nb\t1\n")
  path.write_text(content)
  with pytest.raises(errors.UsageError, match=message):
    glue.align(
      glue_examples.read_glue_file(data, task),
      glue.read_predictions(path, task),
      path,
    )


def test_every_real_file_is_read(shared):
  """The sizes are those that the GLUE paper and its site give."""
  sizes = {
    "AX/diagnostic.tsv": (1104, 0),
    "CoLA/train.tsv": (8551, 0),
    "CoLA/dev.tsv": (1043, 0),
    "CoLA/test.tsv": (1063, 0),
    "MNLI/dev_matched.jsonl": (9815, 0),
    "MRPC/train.tsv": (3668, 0),
    "MRPC/dev.tsv": (408, 0),
    "MRPC/test.tsv": (1725, 0),
    "QNLI/dev.tsv": (5463, 0),
    "QNLI/test.tsv": (5463, 0),
    "QQP/dev_subset.tsv": (23496, 1),
    "RTE/train.tsv": (2490, 0),
    "RTE/dev.tsv": (277, 0),
    "RTE/test.tsv": (3000, 0),
    "SST-2/train.tsv": (67349, 0),
    "SST-2/dev.tsv": (872, 0),
    "SST-2/test.tsv": (1821, 0),
    "SST-2/test_labeled.tsv": (1821, 0),
    "STS-B/train.tsv": (5749, 0),
    "STS-B/dev.tsv": (1500, 0),
    "STS-B/test.tsv": (1379, 0),
  }
  found = {}
  for directory in sorted((shared / "data/glue").iterdir()):
    task = glue_tasks.find_task(directory.name)
    for file in glue_examples.read_glue_directory(directory, task):
      name = f"{directory.name}/{file.path.name}"
      found[name] = len(file.examples), file.dropped
  assert found == sizes
