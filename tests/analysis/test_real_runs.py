"""A report of two real runs, number by number against their event files."""

import io

import pandas as pd
import tensorflow as tf

from official.core import train_utils
from swe_tf.analysis import report as report_lib
from tests import tiny

_STEPS, _INTERVAL, _TAU = 20, 5, 2
_VALIDATION = {"baseline": "validation", "swe": "evals/held_out"}


def _train(model_dir, records, mode):
  sharing = {"mode": mode, "untie_step": _TAU}
  trainer = tiny.every(_INTERVAL, train_steps=_STEPS)
  trainer["validation_interval"] = _INTERVAL
  trainer["validation_summary_subdir"] = _VALIDATION[model_dir.split("/")[-1]]
  layers = {"task": {"sharing": sharing}, "trainer": trainer}
  config = tiny.config_of(tiny.overrides(records), layers)
  runner = tiny.make_runner(config, model_dir, mode="train_and_eval")
  train_utils.serialize_config(config, model_dir)
  runner.controller.train_and_evaluate(
    train_steps=_STEPS, eval_steps=2, eval_interval=_INTERVAL
  )


def _scalars(folder, tag):
  """Reads a curve with TensorFlow's own reader."""
  curve = {}
  for path in sorted(folder.glob("events*")):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        if value.tag == tag:
          curve[event.step] = float(tf.make_ndarray(value.tensor))
  return curve


def _csv(contents, name):
  text = io.BytesIO(contents[f"{name}.csv"])
  frame = pd.read_csv(text, dtype=str, keep_default_na=False)
  return frame.to_dict("records")


def test_every_number_is_in_the_event_files(tmp_path):
  runs = tmp_path / "runs"
  records = tiny.write_records(tmp_path)
  for name, mode in (("baseline", "none"), ("swe", "swe")):
    _train(str(runs / name), records, mode)
  contents = report_lib.to_files(report_lib.make([runs]))
  losses, accuracies = {}, {}
  for name in ("baseline", "swe"):
    folder = runs / name / _VALIDATION[name]
    losses[name] = _scalars(folder, "validation_loss")
    accuracies[name] = _scalars(folder, "masked_lm_accuracy")
    assert list(losses[name]) == [5, 10, 15, 20], "validated on the way"
  assert losses["baseline"] != losses["swe"]
  assert _scalars(runs / "swe" / "train", "sharing/untie_step")[20] == _TAU

  rows = {row["method"]: row for row in _csv(contents, "methods")}
  for name, row in rows.items():
    assert float(row["validation_loss_mean"]) == losses[name][_STEPS]
    assert float(row["mlm_accuracy_mean"]) == 100 * accuracies[name][_STEPS]
    assert row["seeds"] == row["validation_loss_n"] == "1"
    assert row["validation_loss_low"] == ""
    assert float(row["learning_rate"]) == 0.01
  assert rows["swe"]["untie_step"] == str(_TAU)
  assert rows["swe"]["unit"] == f"1x{tiny.LAYERS}"
  assert float(rows["swe"]["loss_difference_mean"]) == (
    losses["swe"][_STEPS] - losses["baseline"][_STEPS]
  )
  gain = 100 * accuracies["swe"][_STEPS] - 100 * accuracies["baseline"][_STEPS]
  assert float(rows["swe"]["mlm_gain_mean"]) == gain
  assert rows["swe"]["verdict"] == "cannot tell (one seed)"
