"""`swe pilot`: its plan, its budget, and its answer to runs that pretend."""

import dataclasses
import json

import pytest
import yaml

from official.core import exp_factory
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.analysis import statistics
from swe_tf.commands import pilot as command
from swe_tf.configs import cost
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import pilot
from swe_tf.studies import worker
from tests import tiny
from tests.analysis import fake_runs


@pytest.fixture(scope="module", name="config")
def _config(tmp_path_factory):
  task = tiny.encoder(num_layers=4) | {"sharing": {"untie_step": 200}}
  trainer = tiny.every(10, train_steps=1000)
  base = tiny.written(tmp_path_factory.mktemp("records"))
  return tiny.config_of(base, {"task": task, "trainer": trainer})


def test_a_plan_is_cut_down_and_decays_to_zero(config):
  study = pilot.make_study("swe/bert_pretraining", config, 105, 3)
  arms = ["baseline", "equal_init", "swe", "one_loop", "layers1", "baseline65"]
  assert list(study.tuning.arms) == arms
  assert study.tuning.seeds == (0, 1, 2, 3)
  assert study.tuning.kept == ("layers1",)
  assert study.tuning.controls == {"one_loop": "baseline65"}
  assert study.tuning.learning_rates == (0.005, 0.01, 0.02)
  configs = experiments.make_configs(study)
  # Six arms at three rates, then three fresh seeds of each.
  assert len(configs) == 18 and pilot.most_runs(study) == 36
  flops = {name: cost.training_flops(each) for name, each in configs.items()}
  base, recipe, control = (
    flops[f"{arm}-lr0.01-seed0"]
    for arm in ("baseline", "one_loop", "baseline65")
  )
  # The control has at least the recipe's FLOPs, to the next 5%.
  assert 0.6 * base < recipe <= control == 0.65 * base
  for name, each in configs.items():
    steps = 65 if name.startswith("baseline65") else 100
    assert each.trainer.train_steps == steps
    rate = each.trainer.optimizer_config.learning_rate.polynomial
    assert rate.decay_steps + rate.offset == steps
    assert rate.end_learning_rate == 0
    assert each.task.train_data.input_path == config.task.train_data.input_path
    sharing = each.task.sharing
    assert (sharing.mode == "none") == name.startswith(("baseline", "layers"))
    layers = each.task.model.encoder.any.num_layers
    assert layers == (1 if name.startswith("layers1") else 4)
    if name.startswith("swe"):
      assert sharing.untie_fraction == pytest.approx(0.2)
      assert sharing.untie_step is None and not sharing.loops
    if name.startswith("one_loop"):
      assert [stage.loops for stage in sharing.loops] == [1]
  assert pilot.sharing_arms(study) == ["swe", "one_loop"]


def test_what_is_planned_beyond_algorithm_1_is_an_arm_of_its_own(config):
  planned = exp_factory.get_exp_config("swe/bert_pretraining")
  planned.override(config.as_dict())
  planned.override(
    {"task": {"sharing": {"loops": [{"loops": 1, "until_step": 100}]}}}
  )
  planned.validate()
  study = pilot.make_study("swe/bert_pretraining", planned, 100, 2)
  sharing = study.tuning.arms["planned"]["task"]["sharing"]
  assert sharing["untie_fraction"] == pytest.approx(0.2)
  assert sharing["loops"][0]["until_fraction"] == pytest.approx(0.1)
  experiments.make_configs(study)


@pytest.mark.parametrize("steps", [10, 1001])
def test_a_budget_that_makes_no_sense_is_refused(config, steps):
  with pytest.raises(errors.UsageError, match=f"a pilot of {steps} steps"):
    pilot.make_study("swe/bert_pretraining", config, steps, 3)


def test_steps_follow_from_the_time():
  timing = {"start": 10.0, "step": 0.1}
  steps = pilot.fit(timing, seconds=3600, runs=20, jobs=2, planned=10**6)
  # 360 s a run, 20 of them to start: the rest at 1.4 times the step.
  assert steps == 2420
  assert pilot.fit(timing, 3600, 20, 2, planned=400) == 400
  with pytest.raises(errors.UsageError, match="Give at least 0.063 hours"):
    pilot.fit(timing, 100, 20, 2, 1000)


class _Pretended:
  """An executor whose runs end at once, with the loss that their point has."""

  def __init__(self, loss):
    self._loss = loss

  def run(self, runs, tick):
    tick()
    for each in runs:
      loss = self._loss(**each.about["axes"])
      if loss is None:
        yield each.name, "no luck"
        continue
      steps = each.config.trainer.train_steps
      for folder, tag in _LOGS:
        path = each.directory.path / folder
        fake_runs.write_events(path, {tag: [(steps, loss)]})
      metrics = {"validation_loss": loss}
      worker.Job(each.directory.path).finish({"metrics": metrics})
      yield each.name, ""


@pytest.fixture(name="options")
def _options(config, tmp_path):
  plan = tmp_path / "plan.yaml"
  plan.write_text(yaml.safe_dump(config.as_dict()))
  return command.Options(
    experiment="swe/bert_pretraining",
    config_file=(str(plan),),
    output_dir=str(tmp_path / "out"),
    steps=100,
  )


_LOGS = ("train", "training_loss"), ("validation", "validation_loss")
_ADDED = dict.fromkeys(("equal_init", "swe", "one_loop", "layers1"), 0.4)
_SHALLOW = "A 1-layer model would do"


@pytest.mark.parametrize(
  "added, verdict, note",
  [
    ({"swe": -0.2}, "share", ""),
    ({"swe": 0.03, "layers1": -0.1}, "do not share", _SHALLOW),
    # Above the baseline, but below the one with as few FLOPs.
    ({"one_loop": 0.03, "baseline65": 0.3}, "share", ""),
    ({"swe": 0.0, "layers1": 0.0}, "cannot tell", _SHALLOW),
  ],
)
def test_a_pilot_says_whether_to_share(
  options, tmp_path, monkeypatch, capsys, added, verdict, note
):
  at_edge = added.get("swe", 0) < 0
  # With 50 tokens, the entropy of single ones is below 4.
  base = 4.0 if verdict == "cannot tell" else 2.0

  def loss(arm, learning_rate, seed):
    # The tuning seed, which never counts, is far off.
    shift = {0: -1.0}.get(seed, 0.01 * seed)
    if arm == "swe" and verdict == "cannot tell":
      shift -= 0.2 * (-1) ** seed
    best = 0.02 if arm == "swe" and at_edge else 0.01
    shift += (_ADDED | added).get(arm, 0.0)
    return base + shift + abs(learning_rate - best)

  monkeypatch.setattr(executors, "Local", lambda jobs: _Pretended(loss))
  for _ in range(2):  # The second call has all runs.
    assert command.run(options) == 0
    printed = capsys.readouterr().out
    assert f"verdict: {verdict}\n" in printed
    assert (_SHALLOW in printed) == bool(note)
    assert (statistics.TOO_SHORT in printed) == (base == 4.0)
    assert ("of swe is at the edge" in printed) == at_edge
  assert printed.count("(finished before)") > 18
  content = json.loads((tmp_path / "out" / "pilot.json").read_text())
  assert content["verdict"] == verdict
  assert ("swe" in content["dropped"]) == ("swe" not in added)
  for changes in (
    {"seeds": 4},
    {"steps": 80},
    {"params_override": "task.train_data.global_batch_size=4"},
  ):
    with pytest.raises(errors.UsageError, match="another .*output_dir"):
      command.run(dataclasses.replace(options, **changes))
  assert json.loads((tmp_path / "out" / "pilot.json").read_text()) == content


def test_a_pilot_without_a_baseline_has_no_verdict(options, monkeypatch):
  nothing = _Pretended(lambda **point: None)
  monkeypatch.setattr(executors, "Local", lambda jobs: nothing)
  with pytest.raises(errors.Failed, match="no baseline run has finished"):
    command.run(options)


@pytest.mark.slow
def test_a_step_is_timed_in_a_process(config):
  timing = pilot.time_step("swe/bert_pretraining", config.as_dict())
  assert timing["start"] > timing["step"] > 0
