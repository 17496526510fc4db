"""The demo on a tiny text: with and without sharing, interrupted, run again."""

import json
import random
import re

import pytest

from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.modeling import registry
from swe_tf.studies import experiments
from swe_tf.studies import jobs
from swe_tf.studies import sweep
from swe_tf.studies import worker
from swe_tf.studies.demo import page
from swe_tf.studies.demo import sentences
from swe_tf.studies.demo import session

_STEPS, _TAU = 6, 3
_ENCODER = "task.model.encoder.any"
_TINY = ",".join(
  [
    *(
      f"task.{part}_data.global_batch_size=4"
      for part in ("train", "validation")
    ),
    f"{_ENCODER}.num_layers=2,{_ENCODER}.hidden_size=8",
    f"{_ENCODER}.num_attention_heads=2,task.sharing.untie_step={_TAU}",
    f"trainer.train_steps={_STEPS},trainer.validation_interval={_STEPS}",
    "trainer.steps_per_loop=2,trainer.summary_interval=2",
    "trainer.checkpoint_interval=2,trainer.validation_steps=1",
  ]
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


class _Interrupted(worker.Job):
  """Keeps what is reported, and is interrupted at the second report."""

  def __init__(self, path, told):
    super().__init__(path)
    self._told = told

  def report(self, status):
    super().report(status)
    self._told.append((status.step, status.phase))
    assert status.untie_step == _TAU
    if len(self._told) == 2:
      raise KeyboardInterrupt


def test_sharing_is_untied_and_an_interrupted_run_goes_on(
  corpus, tmp_path, monkeypatch
):
  fill, apart = sentences.fill, []

  def watched_fill(model, *arguments):
    weights = [block.get_weights() for block in registry.blocks_of(model)]
    apart.append(max(abs(a - b).max() for a, b in zip(*weights)))
    return fill(model, *arguments)

  monkeypatch.setattr(sentences, "fill", watched_fill)
  study = session.make_study(corpus, _TINY)
  configs = experiments.make_configs(study)
  run = sweep.make_runs(study, configs, tmp_path)[0]
  run.begin()
  told = []
  with pytest.raises(KeyboardInterrupt):
    jobs.demo(_Interrupted(run.directory.path, told))
  path = run.directory.path / "filled_at_untying.json"
  at_untying = json.loads(path.read_text())
  result = jobs.demo(_Interrupted(run.directory.path, told))
  # Orbit saves after the actions: step 4 was not saved.
  untied = "unshared"
  assert told == [(2, "shared"), (4, untied), (4, untied), (6, untied)]
  assert result["steps"] == _STEPS and result == run.directory.read_result()
  assert page.read_arm(run).untie_step == _TAU
  # Filled in after the last shared update, before the first unshared one.
  assert at_untying["step"] == _TAU
  assert apart[0] == 0.0 and apart[-1] > 0.0 and len(apart) == 2
  assert result["filled_at_untying"] == at_untying["filled"]
  assert [len(row) for row in result["filled"]] == [5] * 5


def test_the_baseline_is_the_run_without_sharing_whatever_was_asked(corpus):
  nothing = "task.sharing.mode=none"
  expected = experiments.make_configs(session.make_study(corpus, nothing))
  assert list(expected) == ["model"]
  for override in (
    "",
    "task.sharing.recipe=one_loop",
    "task.sharing.loops=[{loops: 1}]",
  ):
    configs = experiments.make_configs(session.make_study(corpus, override))
    assert configs["baseline"].as_dict() == expected["model"].as_dict()


def test_bad_overrides_are_one_line_before_anything_is_written(tmp_path):
  with pytest.raises(errors.UsageError, match="no_such"):
    session.run(str(tmp_path / "demo"), "task.no_such=1")
  assert not (tmp_path / "demo").exists()


@pytest.mark.slow
def test_the_command_trains_both_and_tells_their_times(
  corpus, tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(docstrings, "write_corpus", lambda folder: corpus)
  session.run(str(tmp_path), _TINY)
  output = capsys.readouterr().out
  for name in ("model", "baseline"):
    assert re.search(rf"\n{name}: \d+ s, \d+ s of CPU time", output)
  results = {
    name: json.loads((tmp_path / name / "result.json").read_text())
    for name in ("model", "baseline")
  }
  text = (tmp_path / "index.html").read_text()
  assert f"at untying (step {_TAU})" in text and "baseline, at the end" in text
  assert all(
    f"{each['metrics']['validation_loss']:.3f}" in text
    for each in results.values()
  )
  session.run(str(tmp_path), _TINY)
  assert capsys.readouterr().out.count("finished before") == 2
  with pytest.raises(errors.UsageError, match="but now it is"):
    session.run(str(tmp_path), "task.seed=7")
