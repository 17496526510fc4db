"""One run: resuming, diverging, and the files that it leaves."""

import dataclasses
import json

import numpy as np
import pytest

from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import prepared_data
from swe_tf.scoring import glue_predictions
from swe_tf.scoring import submission
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import worker
from swe_tf.studies.finetune import jobs
from swe_tf.studies.finetune import predictions
from swe_tf.studies.finetune import protocol
from tests.studies.finetune import samples

pytestmark = pytest.mark.slow  # Each trains, for a minute or so.

_RUN = protocol.Run(1e-3, 1)
_SMALL = dict(
  hidden_size=16, num_layers=1, num_attention_heads=2, intermediate_size=16
)


def _settings(directory, name, override="", epochs=3.0, count=32):
  data_dir = samples.write_data(
    name, directory, count=count, real=False, max_seq_length=64
  )
  encoder = samples.write_encoder(directory / "encoder", data_dir, **_SMALL)
  return protocol.Settings(
    data_dir=data_dir,
    checkpoint=encoder,
    epochs=epochs,
    params_override=",".join(
      filter(None, ["task.train_data.global_batch_size=8", override])
    ),
  )


def _job(directory, **arguments):
  return worker.Job(directory_lib.RunDirectory(directory), **arguments)


def _fields(settings, run=_RUN):
  return {
    "settings": dataclasses.asdict(settings),
    "run": dataclasses.asdict(run),
  }


def _train_in_parts(settings, directory, stops):
  """Trains up to each stop with a new runner; returns the final variables."""
  config = jobs.build_config(settings, _RUN)
  for stop in stops:
    runner = jobs.make_runner(config, _job(directory))
    with runner.strategy.scope():
      runner.controller.train(stop)
  return [variable.numpy() for variable in runner.trainer.model.variables]


def test_resumed_equals_straight_with_dropout(tmp_path):
  # 12 steps of 8, 4 an epoch: stops within an epoch and between two.
  settings = _settings(tmp_path, "SST-2")
  straight = _train_in_parts(settings, tmp_path / "straight", [12])
  resumed = _train_in_parts(settings, tmp_path / "resumed", [5, 8, 12])
  for ours, theirs in zip(resumed, straight, strict=True):
    np.testing.assert_array_equal(ours, theirs)


def test_diverged_run_is_a_result(tmp_path):
  settings = _settings(tmp_path, "SST-2")
  result = jobs.train(
    _job(tmp_path / "run"), **_fields(settings, protocol.Run(1e30, 0))
  )
  assert result["status"] == "diverged" and "at step" in result["reason"]
  written = json.loads((tmp_path / "run" / "result.json").read_text())
  assert written == result


def test_glue_run_leaves_what_scoring_and_submission_read(tmp_path):
  settings = _settings(tmp_path, "SST-2", epochs=1.0)
  directory = tmp_path / "runs" / "SST-2" / _RUN.name
  told = []
  job = _job(directory, send=lambda **message: told.append(message))
  result = jobs.train(job, **_fields(settings))
  assert [each["step"] for each in told] == [1, 2, 3, 4, 4]
  assert told[-1]["text"] == "evaluating"
  task = glue_tasks.find_task("SST-2")
  predicted = glue_predictions.read_predictions(directory / "dev.tsv", task)
  assert sorted(predicted) == list(range(32))
  right = sum(predicted[row] == row % 2 for row in predicted)
  assert result["scores"] == {"dev": {"accuracy": 100 * right / 32}}

  scores = jobs.predict(_job(directory), **_fields(settings), ax_data_dir="")
  assert scores == {}  # The test set has no labels.
  (directory.parent / "selection.json").write_text(
    json.dumps({"best": _RUN.name})
  )
  found = submission.find_predictions(tmp_path / "runs", "SST-2")
  # The same examples and the same weights as the dev set.
  assert found.read_text() == (directory / "dev.tsv").read_text()


@pytest.mark.slow
def test_mnli_model_answers_both_parts_and_ax(tmp_path):
  settings = _settings(tmp_path, "MNLI", epochs=1.0)
  ax_data_dir = samples.write_data(
    "AX", tmp_path, count=32, real=False, max_seq_length=64
  )
  directory = tmp_path / "runs" / "MNLI"
  result = jobs.train(_job(directory), **_fields(settings))
  assert list(result["scores"]) == ["dev_matched", "dev_mismatched"]
  scores = jobs.predict(
    _job(directory), **_fields(settings), ax_data_dir=ax_data_dir
  )
  assert list(scores) == ["diagnostic"]
  assert list(scores["diagnostic"]) == ["matthews_corrcoef"]
  for name in ("MNLI-m", "MNLI-mm", "AX"):
    path = submission.find_predictions(tmp_path / "runs", name)
    assert path == directory / f"{name}.tsv"
    task = glue_tasks.find_task(name)
    assert len(glue_predictions.read_predictions(path, task)) == 32


def test_random_weights_are_the_same_model_untrained(tmp_path):
  settings = _settings(tmp_path, "SST-2")
  config = jobs.build_config(settings, _RUN)
  fields = {
    field: getattr(settings, field)
    for field in ("data_dir", "checkpoint", "params_override")
  }
  random = jobs.build_config(
    protocol.Settings(init=protocol.RANDOM, **fields), _RUN
  )
  assert config.task.init_checkpoint and not random.task.init_checkpoint
  assert (
    random.task.model.encoder.as_dict() == config.task.model.encoder.as_dict()
  )
  checkpoint = jobs.check(worker.Job(), **_fields(settings))
  assert checkpoint.endswith("encoder/ckpt-1")


@pytest.mark.parametrize(
  "task, split, name",
  [
    ("SST-2", "test", "predictions.tsv"),
    ("SST-2", "test_labeled", "test_labeled.tsv"),
    ("MNLI", "test_matched", "MNLI-m.tsv"),
    ("MNLI", "test_mismatched", "MNLI-mm.tsv"),
    ("AX", "diagnostic", "AX.tsv"),
  ],
)
def test_names_of_prediction_files(task, split, name):
  data = prepared_data.PreparedData("data", {"task": task}, {})
  assert (
    predictions.prediction_file(data, prepared_data.Split(split, "", 1, False))
    == name
  )
