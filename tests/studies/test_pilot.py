"""`swe pilot`: its plan, its budget, and a case in which sharing must win."""

import json

import pytest

from official.core import exp_factory
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import cost
from swe_tf.studies import experiments
from swe_tf.studies import pilot
from tests import tiny
from tests.end_to_end import programs


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


@pytest.mark.slow
def test_where_sharing_must_win_it_says_so(tmp_path):
  """Theorem 1's case, resumed after its first call; see `deep_linear.py`."""
  command = ["pilot", "--jobs=2", "--plugins=tests.studies.deep_linear"]
  command += ["--experiment=test/deep_linear", f"--output_dir={tmp_path}"]
  # A budget in hours is timed in a process of its own, and nothing is run.
  timed = programs.succeed(programs.swe(*command, "--hours=1", "--dry_run"))
  assert "s to start" in timed and not any(tmp_path.iterdir())
  outputs = [
    programs.succeed(programs.swe(*command, "--steps=100")) for _ in range(2)
  ]
  assert "verdict: share" in outputs[0]
  assert "Equal initial weights, never tied, do as well" in outputs[0]
  assert outputs[1].count("(finished before)") >= 9
  content = json.loads((tmp_path / "pilot.json").read_text())
  assert content["verdict"] == "share"
  assert content["outcomes"]["swe"]["difference"]["high"] < 0
