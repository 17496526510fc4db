"""The runs of a study: their configs, their files, one run by function call."""

import dataclasses
import json
from unittest import mock

import numpy as np
import pytest
import yaml

from swe_tf import errors
from swe_tf import plugins
from swe_tf.analysis import outcome
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import scalars as curves
from swe_tf.commands import sweep as command
from swe_tf.configs import cost
from swe_tf.studies import experiments
from swe_tf.studies import jobs
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies import worker
from tests import tiny
from tests.end_to_end import programs


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory):
  """A study of a tiny baseline and a tiny SWE run."""
  axes = {"method": ["baseline", "swe"], "seed": [1]}
  path = programs.write_study(tmp_path_factory.mktemp("study"), axes)
  return study_file.read_study(str(path))


def test_configs_follow_the_axes(study):
  configs = experiments.make_configs(study)
  baseline, swe = configs.values()
  assert baseline.task.sharing.mode == "none"
  assert swe.task.sharing.mode == "swe"
  assert swe.task.seed == swe.task.train_data.seed == 1
  assert swe.trainer.train_steps == tiny.STEPS
  assert cost.tokens(swe) == tiny.STEPS * 8 * tiny.LENGTH
  # A recipe is a method, which sets tau and the unit itself.
  axes = {"method": ["one_loop"], "tau": [0.1, 0.2], "units": [1, 2]}
  (run,) = study_file.plan_runs(axes)
  sharing = experiments.make_config(study, run).task.sharing
  assert run.name == "one_loop" and sharing.recipe == "one_loop"
  assert sharing.loops[0].loops == 1 and sharing.untie_fraction == 0.5


def test_configs_that_cannot_be_run_are_refused(study):
  (run,) = study_file.plan_runs({"method": ["swe"], "units": ["2x12"]})
  with pytest.raises(errors.UsageError, match="are 24 layers, but .* has 2"):
    experiments.make_config(study, run)
  other = dataclasses.replace(study, experiment="swe/bert_pretrainin")
  with pytest.raises(errors.UsageError, match="did you mean swe/bert_pretrain"):
    experiments.make_config(other, run)
  (run,) = study_file.plan_runs({"seed": [0]})
  with pytest.raises(errors.UsageError, match="run seed0: .*no_such"):
    experiments.make_config(study, run, "task.no_such=1")


def test_entropy_is_that_of_the_masked_tokens(study):
  config = experiments.make_config(study, study.runs[0])
  measured = experiments.unigram_entropy(config)
  # 3 uniform tokens of 45 in each of 16 sequences: near log(45), not above.
  assert np.log(45) - 0.6 < measured < np.log(45)


def test_a_run_of_another_configuration_is_refused(study, tmp_path):
  configs = experiments.make_configs(study)
  in_memory = sweep.make_runs(study, configs, "ram://study")[0]
  assert str(in_memory.directory.path) == "ram://study/baseline-seed1"
  run = sweep.make_runs(study, configs, tmp_path)[0]
  run.begin()
  sweep.make_runs(study, configs, tmp_path)
  more = experiments.make_configs(study, "task.train_data.global_batch_size=4")
  with pytest.raises(
    errors.UsageError, match="global_batch_size 8, but now it is 4"
  ):
    sweep.make_runs(study, more, tmp_path)
  earlier = yaml.safe_load(run.directory.config_file.read_text())
  del earlier["task"]["sharing"]["unit_size"]  # A parameter newer than the run.
  run.directory.config_file.write_text(yaml.safe_dump(earlier))
  sweep.make_runs(study, configs, tmp_path)


@pytest.mark.parametrize(
  "override, says",
  [
    ("task.validation_data.input_path=''", "validation_data.input_path is not"),
    ("trainer.validation_steps=0", "nothing is evaluated"),
    ("task.train_data.input_path=no_such_file", "no_such_file"),
    ("task.init_checkpoint=no_such_file", "init_checkpoint"),
  ],
)
def test_data_that_is_missing_is_told_before_the_first_run(
  study, override, says
):
  with pytest.raises(errors.UsageError, match=says):
    experiments.make_configs(study, override)


def test_a_metric_that_is_not_measured_is_told_before_the_first_run(study):
  other = dataclasses.replace(study, metrics=("validation_los",))
  with pytest.raises(errors.UsageError, match="did you mean validation_loss?"):
    experiments.make_configs(other)
  best = "trainer.best_checkpoint_export_subdir=b,"
  best += "trainer.best_checkpoint_eval_metric=los"
  with pytest.raises(errors.UsageError, match="eval_metric: validation has no"):
    experiments.make_configs(study, best)


def test_a_run_that_diverged_is_a_result_that_is_not_repeated(tmp_path, capsys):
  axes = {"method": ["swe"], "seed": [1]}
  path = programs.write_study(tmp_path, axes, loss_upper_bound=0.1)
  study, output_dir = study_file.read_study(str(path)), tmp_path / "runs"
  configs = experiments.make_configs(study)
  (run,) = sweep.make_runs(study, configs, output_dir)
  run.begin()
  result = jobs.train(worker.Job(run.directory.path))
  assert (result["status"], result["steps"]) == ("diverged", 5)
  options = command.Options(study=str(path), output_dir=str(output_dir))
  assert command.run(options) == 0
  printed = capsys.readouterr().out
  assert "diverged: the loss is" in printed and "(finished before)" in printed
  assert "1 of 1 runs diverged" in printed
  found, _ = runs_lib.read([output_dir])
  assert list(found.status) == ["diverged"] and found.seconds[0] > 0


def test_commands_have_the_plugins_and_an_unknown_cost_is_not_shown(
  tmp_path, capsys, monkeypatch
):
  path = programs.write_study(tmp_path, {"method": ["swe"], "seed": [1]})
  options = command.Options(
    study=str(path), output_dir=str(tmp_path / "runs"), print_commands=True
  )
  monkeypatch.setenv(plugins.VARIABLE, "tests.methods.outside")
  command.run(options)
  assert " --plugins=tests.methods.outside" in capsys.readouterr().out
  options = dataclasses.replace(options, print_commands=False, dry_run=True)
  for shown, error in ((True, None), (False, errors.UsageError("no formula"))):
    if error:
      monkeypatch.setattr(cost, "training_flops", mock.Mock(side_effect=error))
    command.run(options)
    assert ("left: " in capsys.readouterr().out) == shown


def test_the_record_of_a_run_is_that_of_its_event_files(study, tmp_path):
  study = study.without_runs({"baseline-seed1"})
  configs = experiments.make_configs(study)
  (run,) = sweep.make_runs(study, configs, tmp_path)
  sweep.write_study(study, tmp_path, unigram_entropy=None)
  run.begin()
  job = worker.Job(run.directory.path)
  result = jobs.train(job)
  assert result == run.directory.read_result()
  events = curves.read_scalars(str(run.directory.path / "validation"))
  value = result["metrics"]["validation_loss"]
  assert events["validation_loss"][-1] == (tiny.STEPS, value)
  about = json.loads((run.directory.path / "run.json").read_text())
  assert about == {
    "name": "swe-seed1",
    "experiment": "swe/bert_pretraining",
    "method": "swe",
    "axes": {"method": "swe", "seed": 1},
    "metrics": ["validation_loss", "masked_lm_accuracy"],
  }
  saved = yaml.safe_load(run.directory.config_file.read_text())
  config = experiments.get(study.experiment, saved)
  assert config.task.sharing.untie_step == tiny.TAU
  job.read_about = lambda: about | {"metrics": ["perplexity"]}
  with pytest.raises(errors.Failed, match="validation has no 'perplexity"):
    jobs.train(job)
  assert outcome.read_records(tmp_path) == []  # It is not a run of an arm.
