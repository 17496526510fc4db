"""The demo on a tiny text: with and without sharing, interrupted, run again."""

import json
import random

import pytest

from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.modeling import registry
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import worker
from swe_tf.studies.demo import experiment
from swe_tf.studies.demo import jobs
from swe_tf.studies.demo import sentences
from swe_tf.studies.demo import session

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
# The runs of the command are in other processes, which know nothing of patches.
_OVERRIDE = (
  "task.train_data.global_batch_size=4,task.validation_data.global_batch_size=4"
  + "".join(f",trainer.{k}={v}" for k, v in _TINY["trainer"].items())
)


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
  data = experiment.DATA | {"global_batch_size": 4}
  monkeypatch.setattr(experiment, "DATA", data)
  monkeypatch.setattr(experiment, "ENCODER", experiment.ENCODER | _SIZE)
  overrides = experiment.OVERRIDES
  monkeypatch.setattr(
    experiment,
    "OVERRIDES",
    overrides
    | {
      "task": overrides["task"] | _TINY["task"],
      "trainer": overrides["trainer"] | _TINY["trainer"],
    },
  )


def _train(path, corpus, override="", send=lambda **message: None, **arguments):
  job = worker.Job(directory_lib.RunDirectory(path), send)
  return jobs.train(job, list(corpus), override, **arguments)


def test_sharing_is_untied_and_an_interrupted_run_goes_on(
  corpus, tmp_path, monkeypatch
):
  fill, apart = sentences.fill, []

  def watched_fill(model, *arguments):
    weights = [block.get_weights() for block in registry.blocks_of(model)]
    apart.append(max(abs(a - b).max() for a, b in zip(*weights)))
    return fill(model, *arguments)

  monkeypatch.setattr(sentences, "fill", watched_fill)
  told = []

  def interrupt(step, phase, untie_step, **unused_message):
    told.append((step, phase))
    assert untie_step == _TAU
    if len(told) == 2:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    _train(tmp_path, corpus, send=interrupt)
  at_untying = json.loads((tmp_path / "filled_at_untying.json").read_text())
  result = _train(tmp_path, corpus, send=interrupt)
  # Orbit saves after the actions: step 4 was not saved.
  untied = "unshared"
  assert told == [(2, "shared"), (4, untied), (4, untied), (6, untied)]
  assert result["untie_step"] == _TAU and result["train_steps"] == _STEPS
  assert result == json.loads((tmp_path / "result.json").read_text())
  # Filled in after the last shared update, before the first unshared one.
  assert at_untying["step"] == _TAU
  assert apart[0] == 0.0 and apart[-1] > 0.0 and len(apart) == 2
  assert result["filled_at_untying"] == at_untying["filled"]
  assert [len(row) for row in result["filled"]] == [5] * 5


def test_the_baseline_is_the_run_without_sharing_whatever_was_asked(corpus):
  configs = [
    experiment.make_config(corpus, override, is_baseline).as_dict()
    for override, is_baseline in (
      ("task.sharing.mode=none", False),
      ("", True),
      ("task.sharing.recipe=one_loop", True),
      ("task.sharing.loops=[{loops: 1}]", True),
    )
  ]
  for config in configs:
    assert config == configs[0]
  experiment.check("task.sharing.recipe=one_loop")


def test_bad_overrides_are_one_line(corpus, tmp_path):
  with pytest.raises(errors.UsageError, match="no_such"):
    _train(tmp_path, corpus, "task.no_such=1")


@pytest.mark.slow
def test_the_command_without_sharing(corpus, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(docstrings, "write_corpus", lambda folder: corpus)
  override = f"{_OVERRIDE},task.sharing.mode=none"
  session.run(str(tmp_path), override)
  output = capsys.readouterr().out
  assert "nothing to compare" in output and "\x1b" not in output
  assert not (tmp_path / "baseline").exists()
  page = (tmp_path / "index.html").read_text()
  assert "nothing to compare" in page and "untied" not in page
  session.run(str(tmp_path), override)
  assert "finished before" in capsys.readouterr().out
  with pytest.raises(errors.UsageError, match="params_override"):
    session.run(str(tmp_path))


@pytest.mark.slow
def test_the_command_trains_both_and_tells_the_time_of_each_part(
  corpus, tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(docstrings, "write_corpus", lambda folder: corpus)
  session.run(str(tmp_path), f"{_OVERRIDE},task.sharing.untie_step={_TAU}")
  output = capsys.readouterr().out
  for part in ("text", "training", "page", "together"):
    assert f"\n{part} " in output
  results = {
    name: json.loads((tmp_path / name / "result.json").read_text())
    for name in ("model", "baseline")
  }
  assert results["model"]["untie_step"] == _TAU
  assert "untie_step" not in results["baseline"]
  page = (tmp_path / "index.html").read_text()
  assert f"at untying (step {_TAU})" in page and "baseline, at the end" in page
  assert all(
    f"{each['validation_loss']:.3f}" in page for each in results.values()
  )
