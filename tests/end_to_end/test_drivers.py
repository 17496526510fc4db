"""The drivers as a user runs them: subprocesses, kills, bad flags."""

import contextlib
import csv
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
import tensorflow as tf
import yaml

from tests import tiny
from tests.end_to_end import programs
from tests.studies.finetune import samples

_GIN = programs.ROOT / "gin"
STOCK = ["official.nlp.train", f"--gin_file={_GIN}/swe.gin"]
OURS = ["swe_tf.train"]


@pytest.fixture(scope="module", name="config_file")
def fixture_config_file(tmp_path_factory):
  folder = tmp_path_factory.mktemp("driver")
  config = tiny.written(folder)
  config["trainer"]["checkpoint_interval"] = 5
  path = folder / "tiny.yaml"
  path.write_text(yaml.safe_dump(config))
  return path


def start(
  driver,
  model_dir,
  config_file,
  mode="train",
  experiment="swe/bert_pretraining",
  stdout=subprocess.PIPE,
  **overrides,
):
  command = [
    *(*driver, f"--experiment={experiment}", f"--mode={mode}"),
    *(f"--model_dir={model_dir}", f"--config_file={config_file}"),
    "--params_override=" + ",".join(f"{k}={v}" for k, v in overrides.items()),
  ]
  return programs.start(*command, stdout=stdout)


def kill_after(process, model_dir, steps, after_step):
  """Kills a run as soon as it has a checkpoint of a step."""
  while process.poll() is None:
    if list(model_dir.glob(f"ckpt-{after_step}.index")):
      break
    time.sleep(0.01)
  process.kill()
  process.communicate()
  assert not list(model_dir.glob(f"ckpt-{steps}.index")), "killed too late"


# A slow run: one step a loop, a checkpoint a step, so that kills hit it.
_INTERVALS = ("steps_per_loop", "summary_interval", "checkpoint_interval")
SLOW = {f"trainer.{name}": 1 for name in _INTERVALS}


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_stock_driver_killed_and_restarted_ends_with_the_same_weights(
  tmp_path, config_file, kills
):
  straight = start(STOCK, tmp_path / "straight", config_file, "train_and_eval")
  output = programs.succeed(straight)
  assert f"untied 1x{tiny.LAYERS} after step {tiny.TAU}" in output

  rng = random.Random(0)
  killed = tmp_path / "killed"
  for after_step in sorted(rng.sample(range(1, tiny.STEPS - 1), kills)):
    process = start(STOCK, killed, config_file, **SLOW)
    kill_after(process, killed, tiny.STEPS, after_step)
  output = programs.succeed(start(STOCK, killed, config_file, **SLOW))
  assert "restored from checkpoint" in output
  tiny.assert_same_checkpoints(killed, tmp_path / "straight")

  # The other modes, on what the run left behind; with our driver, which must
  # read what the stock driver wrote.
  for mode in ("eval", "continuous_eval")[:kills]:
    output = programs.succeed(start(OURS, killed, config_file, mode))
    assert "masked_lm_accuracy" in output


# What is said while people wait, on a slow machine again and again.
_WAIT = re.compile(r"( \.\.\.|: \d+ s)$")


def test_one_line_for_each_event(tmp_path, config_file):
  run, changes = tmp_path / "run", {"trainer.validation_interval": tiny.STEPS}
  process = start(OURS, run, config_file, "train_and_eval", **changes)
  *lines, curves, following = programs.succeed(process).splitlines()
  events = [line for line in lines if not _WAIT.search(line)]
  assert len(set(events)) == len(events) <= 20, events
  known = (
    "WARNING: ",
    "blocks share",
    "training on",
    "shared ",
    "unshared",
    "untied ",
  )
  known += ("train: ", "saved checkpoint to", "evaluation at step", "trained ")
  assert all(line.startswith(known) for line in events), events
  assert re.match(r"trained steps 0 to .* FLOPs\): /", events[-1])
  assert curves.startswith("curves: ") and following.startswith("next: swe ")

  process = start(OURS, run, config_file, "eval")
  lines = programs.succeed(process).splitlines()
  events = [line for line in lines if not _WAIT.search(line)]
  starts = ("training on", "restored from", f"evaluation at step {tiny.STEPS}:")
  starts += ("evaluated in", "curves: ", "next: swe ")
  for line, start_of in zip(events[-6:], starts, strict=True):
    assert line.startswith(start_of), line


@pytest.mark.slow
def test_on_a_terminal_it_trains_the_same_weights_and_verbose_tells_all(
  tmp_path, config_file
):
  output = programs.succeed(
    start(STOCK, tmp_path / "stock", config_file, **SLOW)
  )
  terminal, end = pty.openpty()
  process = start(OURS, tmp_path / "ours", config_file, stdout=end, **SLOW)
  os.close(end)
  shown = b""
  with contextlib.suppress(OSError):  # Linux's way to say that it was closed.
    while data := os.read(terminal, 1 << 16):
      shown += data
  os.close(terminal)
  assert process.wait() == 0, shown[-3000:]
  tiny.assert_same_checkpoints(tmp_path / "ours", tmp_path / "stock")
  text = shown.decode()
  assert "\x1b[" in text and "steps to untying, loss" in text
  assert "\x1b[" not in output
  process = start([*OURS, "--verbose"], tmp_path / "ours", config_file, "eval")
  output = programs.succeed(process)
  assert "restored from checkpoint" in output and " eval | step" in output


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_status_says_start_me_again(
  number, tmp_path, config_file
):
  changes = {"trainer.train_steps": 400, "trainer.checkpoint_interval": 400}
  model_dir = tmp_path / "run"
  process = start(OURS, model_dir, config_file, **changes)
  programs.wait_until(lambda: list(model_dir.glob("train/events*")), process)
  process.send_signal(number)
  code, output = programs.finish(process)
  assert code == 75, output[-3000:]
  assert "run the same command again" in output and "Traceback" not in output
  (index,) = model_dir.glob("ckpt-*.index")
  step = int(index.stem.removeprefix("ckpt-"))
  assert 0 < step < 400 and step % 5 == 0

  code, output = programs.finish(start(OURS, model_dir, config_file, **changes))
  assert code == 0 and f"ckpt-{step}" in output, output[-3000:]
  straight = tmp_path / "straight"
  programs.succeed(start(OURS, straight, config_file, **changes))
  tiny.assert_same_checkpoints(model_dir, straight)


def _write_finetuning(name, folder, **layers):
  """Prepares a task; returns its data, and a config file that trains on it."""
  data_dir = samples.write_data(name, folder, count=24, max_seq_length=64)
  encoder = samples.write_encoder(
    folder / "encoder", data_dir, hidden_size=8, intermediate_size=16
  )
  batch = {"global_batch_size": 4}
  task = {"data_dir": data_dir, "init_checkpoint": encoder}
  task |= {"train_data": batch, "validation_data": batch}
  path = folder / "config.yaml"
  path.write_text(yaml.safe_dump({"task": task, **layers}))
  return data_dir, path


@pytest.mark.slow
def test_fine_tuning_killed_and_restarted_ends_with_the_same_weights(tmp_path):
  """Both drivers, data order and dropout included."""
  _, config_file = _write_finetuning(
    "SST-2",
    tmp_path,
    runtime={"distribution_strategy": "off"},
    trainer={"train_steps": 8, "steps_per_loop": 4},
  )

  def run(driver, name, **overrides):
    how = overrides | {"experiment": "swe/glue"}
    return start(driver, tmp_path / name, config_file, **how)

  output = programs.succeed(run(OURS, "straight"))
  for name, driver in (("ours", OURS), ("stock", STOCK)):
    kill_after(run(driver, name, **SLOW), tmp_path / name, 8, 3)
    output = programs.succeed(run(driver, name, **SLOW))
    assert "restored from checkpoint" in output
    tiny.assert_same_checkpoints(tmp_path / name, tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MNLI", "squad_v2.0"])
def test_stock_driver_fine_tunes_and_evaluates_another_split(name, tmp_path):
  is_squad = name.startswith("squad")
  # As in stock's own squad_v1.yaml.
  best = {"eval_metric": "final_f1" if is_squad else "cls_accuracy"}
  best |= {"export_subdir": "best", "metric_comp": "higher"}
  best = {f"best_checkpoint_{key}": value for key, value in best.items()}
  data_dir, config_file = _write_finetuning(
    name,
    tmp_path,
    # The stock driver makes a MirroredStrategy of this.
    runtime={"distribution_strategy": "mirrored", "num_gpus": 0},
    trainer={"train_steps": 2} | best,
  )

  def run(mode, **overrides):
    experiment = "swe/squad" if is_squad else "swe/glue"
    return programs.succeed(
      start(STOCK, tmp_path / "run", config_file, mode, experiment, **overrides)
    )

  score = "exact" if is_squad else "cls_accuracy"
  assert score in run("train_and_eval")
  assert list((tmp_path / "run" / "best").glob("best_ckpt-*.index"))
  # SQuAD has one file to evaluate on in a directory: another is another split.
  other = (
    {"task.data_dir": _questions_of(tmp_path / "other", data_dir)}
    if is_squad
    else {"task.eval_split": "dev_mismatched"}
  )
  output = run("eval", **other)
  assert score in output and "ckpt-2" in output


def _questions_of(directory, data_dir):
  """Copies prepared SQuAD data, without its split for training."""
  shutil.copytree(data_dir, directory)
  path = directory / "manifest.json"
  content = json.loads(path.read_text())
  del content["splits"]["train"]
  path.write_text(json.dumps(content))
  (directory / "train.tf_record").unlink()
  return directory


_ABSENT = {"task.train_data.input_path": "absent/*.tfrecord"}


@pytest.mark.parametrize(
  "driver, cluster, overrides, message",
  [
    (OURS, "", _ABSENT, "absent/*.tfrecord"),
    (STOCK, "3", {}, "TF_CONFIG (3) is not a worker"),
    (STOCK, "", _ABSENT, "absent/*.tfrecord does not match any"),
  ],
)
def test_bad_config_ends_with_our_line_and_leaves_no_trace(
  tmp_path, config_file, monkeypatch, driver, cluster, overrides, message
):
  monkeypatch.setenv("TF_CONFIG", cluster)
  model_dir = tmp_path / "model"
  code, output = programs.finish(
    start(driver, model_dir, config_file, **overrides)
  )
  *_, last = output.splitlines()
  if driver == OURS:
    assert code == 2 and last.startswith("error: "), last
    assert "Traceback" not in output and output.count("error: ") == 1
  else:
    assert code == 1 and last.startswith("swe_tf.errors.UsageError: "), last
  assert message in last
  assert not os.path.exists(model_dir)


def test_what_gin_binds_is_in_params_yaml_and_in_the_report(
  tmp_path, config_file
):
  model_dir, report = tmp_path / "runs" / "bound", tmp_path / "report"
  bound = [
    "SharedWeightsTrainer.untie_rule = @UntieAtStep()",
    "UntieAtStep.untie_step = 3",
    "sharing.unit_size = 2",
  ]
  driver = [*STOCK, *(f"--gin_params={binding}" for binding in bound)]
  changes = {
    "task.model.encoder.any.num_layers": 4,
    "trainer.validation_summary_subdir": "evals/held_out",
  }
  output = programs.succeed(
    start(driver, model_dir, config_file, "train_and_eval", **changes)
  )
  assert "untied 2x2 after step 3" in output
  sharing = yaml.safe_load((model_dir / "params.yaml").read_text())["task"][
    "sharing"
  ]
  assert (sharing["untie_step"], sharing["unit_size"]) == (3, 2)
  assert sharing["rule"] == "fixed" and sharing["bindings"] == []
  flags = f"--runs={tmp_path / 'runs'}", f"--output_dir={report}"
  programs.succeed(programs.swe("report", *flags))
  with open(report / "runs.csv", encoding="utf-8") as file:
    (row,) = csv.DictReader(file)
  assert (row["method"], row["unit"]) == ("swe", "2x2")
  assert float(row["untie_step"]) == 3
  (path,) = (model_dir / "evals/held_out").glob("events*")
  last = {
    value.tag: float(tf.make_ndarray(value.tensor))
    for event in tf.compat.v1.train.summary_iterator(str(path))
    for value in event.summary.value
    if event.step == tiny.STEPS
  }
  assert float(row["validation_loss"]) == last["validation_loss"]
  assert float(row["mlm_accuracy"]) == 100 * last["masked_lm_accuracy"]
