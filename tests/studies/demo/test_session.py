"""The demo on a tiny text, interrupted and run again, and its page."""

import html
import json
import random
import re

import pytest

from swe_tf import errors
from swe_tf.data.text import docstrings
from swe_tf.studies import experiments
from swe_tf.studies import jobs
from swe_tf.studies import sweep
from swe_tf.studies import worker
from swe_tf.studies.demo import session

_STEPS, _TAU = 6, 3
_ENCODER = "task.model.encoder.any"
_TINY = ",".join(
  [
    *(f"task.{x}_data.global_batch_size=4" for x in ("train", "validation")),
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
  """Notes what is reported in `told`; is interrupted at the second report."""

  told: list = []

  def report(self, status):
    super().report(status)
    self.told.append((status.step, status.phase))
    assert status.untie_step == _TAU
    if len(self.told) == 2:
      raise KeyboardInterrupt


def test_sharing_is_untied_and_an_interrupted_run_goes_on(
  corpus, tmp_path, monkeypatch
):
  study = session.make_study(corpus, _TINY)
  configs = experiments.make_configs(study)
  run = sweep.make_runs(study, configs, tmp_path)[0]
  run.begin()
  monkeypatch.setattr(_Interrupted, "told", told := [])
  with pytest.raises(KeyboardInterrupt):
    jobs.train(_Interrupted(run.directory.path))
  result = jobs.train(_Interrupted(run.directory.path))
  # Orbit saves after the actions: step 4 was not saved.
  untied = "unshared"
  assert told == [(2, "shared"), (4, untied), (4, untied), (6, untied)]
  assert result["steps"] == _STEPS and result == run.directory.read_result()
  assert session.read_arm(run).untie_step == _TAU


def test_the_baseline_is_the_run_without_sharing_whatever_was_asked(corpus):
  nothing = "task.sharing.mode=none"
  expected = experiments.make_configs(session.make_study(corpus, nothing))
  assert list(expected) == ["model"]
  for asked in ("", "recipe=one_loop", "loops=[{loops: 1}]"):
    override = f"task.sharing.{asked}" if asked else ""
    configs = experiments.make_configs(session.make_study(corpus, override))
    assert configs["baseline"].as_dict() == expected["model"].as_dict()
    shallow = configs["shallow"].task
    assert shallow.model.encoder.get().num_layers == 3
    assert shallow.sharing.mode == "none"


@pytest.mark.parametrize(
  "override, model, baseline",
  [
    ("", 0.016, 0.004),
    ("task.seed=7", 0.016, 0.004),
    ("task.sharing.unit_size=2", 0.004, 0.004),
    (
      "trainer.optimizer_config.learning_rate.polynomial."
      "initial_learning_rate=0.001",
      *(0.001, 0.001),
    ),
  ],
)
def test_rates_are_those_of_the_map_unless_asked_for(override, model, baseline):
  study = session.make_study(None, override)
  configs = experiments.make_configs(study, has_data=False)
  rates = {
    name: config.trainer.optimizer_config.learning_rate.get()
    for name, config in configs.items()
  }
  assert rates["model"].initial_learning_rate == model
  assert rates["baseline"].initial_learning_rate == baseline


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
  for name in ("model", "baseline", "shallow"):
    assert re.search(rf"\n{name}: final loss .*, \d+ s of CPU time", output)
  results = {
    name: json.loads((tmp_path / name / "result.json").read_text())
    for name in ("model", "baseline")
  }
  text = (tmp_path / "index.html").read_text()
  assert f"In the first {_TAU} steps" in text and "<td>3 layers</td>" in text
  losses = (each["metrics"]["validation_loss"] for each in results.values())
  assert all(f"{loss:.3f}" in text for loss in losses)
  session.run(str(tmp_path), _TINY)
  assert capsys.readouterr().out.count("finished before") == 3
  with pytest.raises(errors.UsageError, match="but now it is"):
    session.run(str(tmp_path), "task.seed=7")


def _arm(loss, untie_step=None, flops=1e12, layers=2):
  # A line from 3 at step 0 down to the loss.
  curve = [(s, 3.0 - (3.0 - loss) * s / 700) for s in range(100, 701, 100)]
  result = {
    "steps": 700,
    "metrics": {"validation_loss": loss, "masked_lm_accuracy": 0.4},
    "seconds": 100.0,
    "cpu_seconds": 90.0,
  }
  curves = {"train/training_loss": curve, "validation/validation_loss": curve}
  if untie_step:
    curves["train/sharing/untie_step"] = [(untie_step, untie_step)]
    curves["train/sharing/gradient_cosine"] = [(10, 0.9), (20, 0.8)]
    curves["train/sharing/distance_from_mean"] = [(80, 0.1), (90, 0.2)]
  study = session.make_study(None, f"{_ENCODER}.num_layers={layers}")
  task = experiments.make_config(study, study.runs[0]).task
  return session.DemoArm(result, curves, task, [(700, flops / 700)])


def _arms(model, baseline, **fields):
  shallow = _arm(2.3, flops=2.5e11, layers=1)
  arms = {"model": _arm(model, 70, **fields), "baseline": _arm(baseline)}
  return arms | {"shallow": shallow}


def _page(arms, output_dir="runs/demo", override=None):
  return session.make_page(arms, 2.9, output_dir, override)


@pytest.mark.parametrize("model", [2.2, 2.0, float("nan")])
def test_one_seed_never_has_a_verdict(model):
  text = session.verdict(_arms(model, 2.1))
  assert "one seed cannot tell whether sharing pays" in text
  assert f"at {model:.3f} nats" in text and "baseline at 2.100" in text
  assert f"difference of {model - 2.1:+.3f}" in text
  assert "1 layers, for 0.25 of the baseline's FLOPs, ended at 2.300" in text


def test_the_page_tells_all_of_it_and_needs_nothing_else():
  page = _page(_arms(2.2, 2.0, flops=5e11))
  verdict = page.partition("The curves")[0]
  assert "difference of +0.200" in verdict
  assert "2.200 nats per token, for 0.50 of the baseline" in verdict
  # Fewer FLOPs are not hidden.
  for part in ("The layers", "What to run next", "5.00e+11", "1.00e+12"):
    assert part in page
  references = re.findall('(?:src|href)="([^"]*)"', page)
  assert len(references) == 4
  assert all(each.startswith("data:image/svg") for each in references)
  assert "swe export --checkpoint=runs/demo/model" in page


def test_what_comes_from_outside_is_escaped():
  override = "task.x=<script>alert(1)</script>"
  text = _page(_arms(2.2, 2.0), "runs/<b>", override)
  assert "<script" not in text and "<b>" not in text
  assert html.escape(override) in text


def test_a_model_that_shares_nothing_has_nothing_to_compare_with():
  text = _page({"model": _arm(2.0)})
  assert "nothing to compare" in text and "untied" not in text
