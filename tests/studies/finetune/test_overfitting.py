"""A tiny model learns 64 examples of every task by heart, scored on the same.

Proof that labels, spans, masks and scores are wired right.
"""

import pathlib

import pytest

from swe_tf.data.prepare import manifest
from swe_tf.data.squad import questions as squad_questions
from swe_tf.scoring import squad as squad_scores
from swe_tf.studies import jobs
from swe_tf.studies import worker
from swe_tf.studies.finetune import protocol
from tests.studies.finetune import samples

_EPOCHS = {"squad_v1.1": 60, "squad_v2.0": 40, "STS-B": 60}
_SLOW = "squad_v1.1 squad_v2.0 MNLI QNLI QQP CoLA MRPC RTE STS-B"


@pytest.mark.parametrize(
  "name",
  ["SST-2", *(pytest.param(n, marks=pytest.mark.slow) for n in _SLOW.split())],
)
def test_learns_64_examples_by_heart(name, tmp_path):
  length = samples.LENGTH if name.startswith("squad") else 64
  data_dir = samples.write_data(name, tmp_path, max_seq_length=length)
  encoder = samples.write_encoder(
    tmp_path / "encoder", data_dir, dropout_rate=0.0, attention_dropout_rate=0.0
  )
  run = samples.make_run(
    tmp_path / "run",
    data_dir,
    encoder,
    learning_rate=1e-3,
    epochs=_EPOCHS.get(name, 30),
    params_override="task.train_data.global_batch_size=16",
  )
  result = jobs.finetune(worker.Job(run.directory.path))
  metric = protocol.selecting_metric(manifest.read(data_dir))
  scores = next(iter(result["scores"].values()))
  assert scores[metric] >= 95.0, result
  if name.startswith("squad"):
    _check_files(name[-3:], pathlib.Path(data_dir), run.directory.path, scores)


def _check_files(version, data_dir, run, scores):
  """What is written scores the same, decided and undecided."""
  squad = squad_questions.read_squad_file(data_dir / "eval.json", version)
  decided = squad_scores.evaluate(
    squad, squad_scores.read_predictions(run / "predictions.json")
  )
  if version == "1.1":
    assert decided["f1"] == scores["f1"]
    return
  assert decided["f1"] == pytest.approx(scores["best_f1"])
  undecided = squad_scores.evaluate(
    squad,
    squad_scores.read_predictions(run / "answers.json"),
    na_probs=squad_scores.read_na_probs(run / "null_odds.json"),
  )
  assert undecided["best_f1"] == pytest.approx(scores["best_f1"])
