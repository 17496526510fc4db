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
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_events
from tests.analysis.fake_runs import write_run

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
  arms, _ = session.read_arms(tmp_path)
  assert arms.untie_step["model"] == _TAU


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


def _write(root, model, baseline=None, sharing=None):
  """Writes the runs of a demo, with their final losses."""
  curves = {
    "sharing/gradient_cosine": [(10, 0.9), (20, 0.8)],
    "sharing/distance_from_mean": [(80, 0.1), (90, 0.2)],
  }
  runs = {"model": (model, sharing or swe(0.2), 24)}
  if baseline is None:
    runs, curves = {"model": (model, None, 24)}, {}
  else:
    runs |= {"baseline": (baseline, None, 24), "shallow": (2.3, None, 6)}
  for name, (loss, shared, layers) in runs.items():
    content = config(sharing=shared, layers=layers)
    folder, curve = root / name, [(20, 3.0)]
    write_run(folder, content, loss, 0.4, curve=curve, seconds=100.0)
    result = {"seconds": 100.0, "cpu_seconds": 90.0}
    (folder / "result.json").write_text(json.dumps(result))
  train = {"training_loss": [(1, 9.0), (100, 2.0)], **curves}
  write_events(root / "model" / "train", train)
  return session.read_arms(root)


def _page(found, output_dir="runs/demo", override=None):
  return session.make_page(*found, output_dir, override)


@pytest.mark.parametrize("model", [2.2, 2.0, float("nan")])
def test_one_seed_never_has_a_verdict(model, tmp_path):
  text = session.verdict(_write(tmp_path, model, 2.1)[0])
  assert "one seed cannot tell whether sharing pays" in text
  assert f"at {model:.3f} nats" in text and "baseline at 2.100" in text
  assert f"difference of {model - 2.1:+.3f}" in text
  assert "6 layers, for 0.25 of the baseline's FLOPs, ended at 2.300" in text
  # From 3.0 at step 20 to 2.1 at step 100.
  assert ("at 2.200 after 0.91 of its steps" in text) == (model == 2.2)


def test_the_page_tells_all_of_it_and_needs_nothing_else(tmp_path):
  half = swe(0.5, loops=[{"loops": 1}])
  page = _page(_write(tmp_path, 2.2, 2.0, half))
  verdict = page.partition("The curves")[0]
  assert "difference of +0.200" in verdict
  assert "2.200 nats per token, for 0.52 of the baseline" in verdict
  # Fewer FLOPs are not hidden.
  for part in ("The layers", "What to run next", "<td>90 s</td>", "40.0%"):
    assert part in page
  references = re.findall('(?:src|href)="([^"]*)"', page)
  assert len(references) == 4
  assert all(each.startswith("data:image/svg") for each in references)
  assert "swe export --checkpoint=runs/demo/model" in page


def test_a_method_that_never_shares_is_not_called_shared(tmp_path):
  method = {"mode": "equal_init", "unit_size": 1}
  page = _page(_write(tmp_path, 2.2, 2.0, method))
  assert "the equal_init model ended at 2.200" in page
  assert "whether equal_init pays" in page and "untying" not in page


def test_what_comes_from_outside_is_escaped(tmp_path):
  override = "task.x=<script>alert(1)</script>"
  text = _page(_write(tmp_path, 2.2, 2.0), "runs/<b>", override)
  assert "<script" not in text and "<b>" not in text
  assert html.escape(override) in text


def test_a_model_that_shares_nothing_has_nothing_to_compare_with(tmp_path):
  text = _page(_write(tmp_path, 2.0))
  assert "nothing to compare" in text and "untied" not in text
