"""The demo on a tiny text: with and without sharing, interrupted, run again."""

import json
import random

import pytest

from swe_tf import demo
from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.runs import directory as directory_lib
from swe_tf.runs import worker

_STEPS, _TAU = 6, 3
_TINY = {
  "task": {"sharing": {"untie_step": _TAU}},
  "trainer": {
    "train_steps": _STEPS,
    "steps_per_loop": 2,
    "summary_interval": 2,
    "checkpoint_interval": 2,
    "validation_interval": _STEPS,
    "validation_steps": 1,
  },
}
_SIZE = {"num_layers": 2, "hidden_size": 8, "num_attention_heads": 2}


@pytest.fixture(scope="module", name="corpus")
def fixture_corpus(tmp_path_factory):
  folder = tmp_path_factory.mktemp("corpus")
  rng = random.Random(0)
  text = "\n\n".join(
    " ".join(rng.choices(("sharing", "weights", "then", "untying"), k=40)) + "."
    for _ in range(40)
  )
  paths = docstrings.CorpusPaths(
    *(str(folder / name) for name in ("train.txt", "valid.txt", "vocab.txt"))
  )
  for path in (paths.train, paths.validation):
    (folder / path).write_text(text)
  vocab = docstrings.character_vocab([text], 40)
  (folder / paths.vocab).write_text("".join(f"{each}\n" for each in vocab))
  return paths


@pytest.fixture(autouse=True)
def fixture_tiny(monkeypatch):
  monkeypatch.setattr(demo, "DATA", demo.DATA | {"global_batch_size": 4})
  monkeypatch.setattr(demo, "ENCODER", demo.ENCODER | _SIZE)
  overrides = demo.OVERRIDES | {
    "task": demo.OVERRIDES["task"] | _TINY["task"],
    "trainer": demo.OVERRIDES["trainer"] | _TINY["trainer"],
  }
  monkeypatch.setattr(demo, "OVERRIDES", overrides)


def _train(path, corpus, override="", send=lambda **message: None):
  job = worker.Job(directory_lib.RunDirectory(path), send)
  return demo.train(job, list(corpus), override)


def test_sharing_is_untied_and_an_interrupted_run_goes_on(corpus, tmp_path):
  told = []

  def interrupt(step, text, **unused_message):
    told.append((step, text.split(" loss")[0]))
    if len(told) == 2:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    _train(tmp_path, corpus, send=interrupt)
  result = _train(tmp_path, corpus, send=interrupt)
  # Orbit saves after the actions: step 4 was not saved.
  untied = f"untied after step {_TAU},"
  assert told == [(2, "shared,"), (4, untied), (4, untied), (6, untied)]
  assert result["untie_step"] == _TAU and result["train_steps"] == _STEPS
  assert result == json.loads((tmp_path / "result.json").read_text())
  assert (tmp_path / "loss.png").stat().st_size > 1000


def test_bad_overrides_are_one_line(corpus, tmp_path):
  with pytest.raises(errors.UsageError, match="no_such"):
    _train(tmp_path, corpus, "task.no_such=1")


def test_the_command_without_sharing(corpus, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(docstrings, "write_corpus", lambda folder: corpus)
  # The run is in another process, which knows nothing of patches.
  override = (
    "task.sharing.mode=none,task.train_data.global_batch_size=4,"
    "task.validation_data.global_batch_size=4,"
    + ",".join(f"trainer.{k}={v}" for k, v in _TINY["trainer"].items())
  )
  demo.run(str(tmp_path), override)
  output = capsys.readouterr().out
  assert "validation_loss" in output and "untie_step" not in output
  assert (tmp_path / "model" / "loss.png").exists()
  demo.run(str(tmp_path), override)
  assert "finished before" in capsys.readouterr().out
  with pytest.raises(errors.UsageError, match="params_override"):
    demo.run(str(tmp_path))
