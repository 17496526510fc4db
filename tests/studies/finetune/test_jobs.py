"""One run: resuming, diverging, and the files that it leaves."""

import json

import numpy as np
import pytest
import tf_keras

from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.scoring import glue
from swe_tf.studies import jobs
from swe_tf.studies import worker
from swe_tf.studies.finetune import protocol
from tests.studies.finetune import samples

pytestmark = pytest.mark.slow  # Each trains, for a minute or so.


def _inputs(directory, name):
  data_dir = samples.write_data(name, directory, count=32, max_seq_length=64)
  encoder = directory / "encoder"
  return data_dir, samples.write_encoder(encoder, data_dir, **samples.SMALL)


def _run(output_dir, inputs, learning_rate=1e-3, epochs=3.0, **settings):
  """Returns a run of 4 steps per epoch."""
  return samples.make_run(
    output_dir,
    *inputs,
    learning_rate=learning_rate,
    epochs=epochs,
    params_override="task.train_data.global_batch_size=8",
    **settings,
  )


def _train_in_parts(run, stops):
  """Trains up to each stop with a new runner; returns the final variables."""
  for stop in stops:
    tf_keras.backend.clear_session()  # As in a process of its own.
    job = worker.Job(run.directory.path)
    runner = jobs.make_runner(job, jobs.read_config(job), mode="train")
    with runner.strategy.scope():
      runner.controller.train(stop)
  return [variable.numpy() for variable in runner.trainer.model.variables]


def test_resumed_equals_straight_with_dropout(tmp_path):
  # 12 steps of 8, 4 per epoch: stops within an epoch and between two.
  inputs = _inputs(tmp_path, "SST-2")
  straight, resumed = (
    _train_in_parts(_run(tmp_path / name, inputs), stops)
    for name, stops in (("straight", [12]), ("resumed", [5, 8, 12]))
  )
  for ours, theirs in zip(resumed, straight, strict=True):
    np.testing.assert_array_equal(ours, theirs)


def test_diverged_run_is_a_result(tmp_path):
  run = _run(tmp_path / "out", _inputs(tmp_path, "SST-2"), learning_rate=1e30)
  result = jobs.finetune(worker.Job(run.directory.path))
  assert result["status"] == "diverged" and "at step" in result["reason"]
  assert run.directory.read_result() == result


def test_glue_run_leaves_what_scoring_and_submission_read(
  tmp_path, monkeypatch
):
  inputs = _inputs(tmp_path, "SST-2")
  run = _run(tmp_path / "runs" / "SST-2", inputs, epochs=1.0)
  directory = run.directory.path
  job, reports = worker.Job(directory), []
  report = job.report
  monkeypatch.setattr(job, "report", lambda x: reports.append(x) or report(x))
  result = jobs.finetune(job)
  assert [each.step for each in reports] == [1, 2, 3, 4, 4]
  assert reports[-1].text == "evaluating"
  task = glue_tasks.find_task("SST-2")
  predicted = glue.read_predictions(directory / "dev.tsv", task)
  assert sorted(predicted) == list(range(32))
  right = sum(predicted[row] == row % 2 for row in predicted)
  assert result["scores"] == {"dev": {"accuracy": 100 * right / 32}}

  content = jobs.predict(worker.Job(directory), ax_data_dir="")
  assert content["scores"] == {}  # The test set has no labels.
  selection = directory.parent / "selection.json"
  selection.write_text(json.dumps({"best": run.name}))
  found = glue.find_predictions(tmp_path / "runs", "SST-2")
  # The same examples and the same weights as the dev set.
  assert found.read_text() == (directory / "dev.tsv").read_text()


def test_mnli_model_answers_both_parts_and_ax(tmp_path):
  run = _run(tmp_path / "runs", _inputs(tmp_path, "MNLI"), epochs=1.0)
  ax_data_dir = samples.write_data("AX", tmp_path, count=32, max_seq_length=64)
  job = worker.Job(run.directory.path)
  result = jobs.finetune(job)
  assert list(result["scores"]) == ["dev_matched", "dev_mismatched"]
  scores = jobs.predict(job, ax_data_dir=ax_data_dir)["scores"]
  assert list(scores) == ["diagnostic"]
  assert list(scores["diagnostic"]) == ["matthews_corrcoef"]
  for name in ("MNLI-m", "MNLI-mm", "AX"):
    path = run.directory.path / f"{name}.tsv"
    task = glue_tasks.find_task(name)
    assert len(glue.read_predictions(path, task)) == 32


def test_random_weights_are_the_same_model_untrained(tmp_path):
  inputs = _inputs(tmp_path, "SST-2")
  config = _run(tmp_path / "pretrained", inputs).config
  random = _run(tmp_path / "random", inputs, init=protocol.RANDOM).config
  assert config.task.init_checkpoint.endswith("encoder/ckpt-1")
  assert not random.task.init_checkpoint
  assert (
    random.task.model.encoder.as_dict() == config.task.model.encoder.as_dict()
  )
