"""Fine-tuning on 1, 2 and 4 replicas: the same weights, answers and scores.

Without dropout and clipping, which Model Garden does on each replica.
"""

import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from swe_tf import errors
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.studies.finetune import predictions
from tests import tiny
from tests.sharing import toy
from tests.studies.finetune import samples

_STEPS = 3
# 30 = 12 + 12 + 6: of 4 replicas, two have no examples in the last batch.
_COUNT, _BATCH = 30, 12
_OPTIMIZER = {
  "optimizer": {"adamw": {"gradient_clip_norm": 0.0, "epsilon": 1e-3}},
  "learning_rate": {"polynomial": {"initial_learning_rate": 0.01}},
}


@pytest.fixture(name="make")
def fixture_make(tmp_path):
  """Returns a function that makes the config of a task, its data written."""

  def make(name, **changes):
    is_squad = name.startswith("squad")
    # A paragraph of SQuAD has two windows.
    sizes = {"max_seq_length": 20 if is_squad else 16}
    sizes |= {"count": _COUNT, "max_query_length": 8, "doc_stride": 4}
    data_dir = samples.write_data(name, tmp_path, **sizes)
    plain = {"dropout_rate": 0.0, "attention_dropout_rate": 0.0}
    encoder = samples.write_encoder(
      tmp_path / "encoder", data_dir, **samples.SMALL, **plain
    )
    task = {
      "data_dir": data_dir,
      "init_checkpoint": encoder,
      "train_data": {"global_batch_size": 8},
      "validation_data": {"global_batch_size": _BATCH, **changes},
    }
    trainer = {"train_steps": _STEPS, "optimizer_config": _OPTIMIZER}
    return tiny.config_of(
      {"task": task, "trainer": trainer},
      experiment="swe/squad" if is_squad else "swe/glue",
    )

  return make


def _run(config, folder, replicas):
  """Trains and evaluates; returns weights, logs, scores and predictions."""
  strategy = toy.strategy_of(replicas)
  runner = tiny.make_runner(
    config, str(folder / f"{replicas}"), "train_and_eval", strategy
  )
  data = manifest.read(config.task.data_dir)
  task, model = runner.trainer.task, runner.trainer.model
  for layer in model.submodules:
    if isinstance(layer, tf_keras.layers.Dropout):
      layer.rate = 0.0  # The head of GLUE has some, whatever the config says.
  with strategy.scope():
    runner.controller.train(_STEPS)
    logs = runner.trainer.evaluate(tf.constant(-1))
    if data.is_squad:
      scores = predictions.evaluate_squad(task, model, folder)
      answers = json.loads((folder / "predictions.json").read_text())
    else:
      path, glue_task = folder / "dev.tsv", glue_tasks.find_task(data.task)
      scores = predictions.evaluate_glue(
        task, model, data.splits["dev"], glue_task, path
      )
      answers = path.read_text().splitlines()
  weights = [variable.numpy() for variable in model.trainable_variables]
  logs = {name: float(value) for name, value in logs.items()}
  return weights, logs, scores, answers


def _check(config, folder, replicas):
  weights, logs, scores, answers = _run(config, folder, 1)
  assert len(answers) >= _COUNT
  if "cls_accuracy" in logs:  # What fills up the last batch is not counted.
    rows = [line.split("\t")[1] for line in answers[1:]]
    right = [row == str(i % 2) for i, row in enumerate(rows)]
    assert len(right) == _COUNT
    assert logs["cls_accuracy"] == pytest.approx(np.mean(right))
  for other in replicas:
    found = _run(config, folder, other)
    for ours, theirs in zip(found[0], weights, strict=True):
      np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert found[1] == pytest.approx(logs, rel=1e-4)
    # Among them thresholds, which are differences of logits.
    assert found[2] == pytest.approx(scores, abs=1e-4)
    assert found[3] == answers


def test_glue(make, tmp_path):
  _check(make("SST-2"), tmp_path, (4,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SST-2", "CoLA", "squad_v1.1", "squad_v2.0"])
def test_all_numbers_of_replicas(name, make, tmp_path):
  config = make(name)
  if name.startswith("squad"):
    data = manifest.read(config.task.data_dir)
    assert data.splits["eval"].size > _COUNT, "windows"
  _check(config, tmp_path, (2, 4))


@pytest.mark.parametrize("name", ["SST-2", "squad_v1.1"])
def test_dropping_the_last_examples_is_refused(name, make):
  with pytest.raises(errors.UsageError, match="drop_remainder is true"):
    make(name, drop_remainder=True)
