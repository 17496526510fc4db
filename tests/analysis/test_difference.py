"""`swe diff`: what differs between two runs, found where it was put."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import yaml

from swe_tf import errors
from swe_tf.analysis import difference
from swe_tf.commands import diff
from tests.analysis import fake_runs

_LEGACY = tf_keras.optimizers.legacy.Adam
_NEW = tf_keras.optimizers.Adam


def _write_run(
  path,
  seed=0,
  losses=(3.0, 2.0, 1.0),
  weight=0.0,
  slot=0.0,
  optimizer=_LEGACY,
  is_wrapped=False,
):
  """Writes a run of 30 steps; weight is added to a weight from 20 on."""
  path.mkdir(parents=True)
  params = {"task": {"seed": seed}, "trainer": {"shape": (1, 2)}}
  (path / "params.yaml").write_text(yaml.dump(params))
  steps = [10, 20, 30]
  curves = {"training_loss": list(zip(steps, losses))}
  curves["steps_per_second"] = [(10, np.random.default_rng().random())]
  fake_runs.write_events(path / "train", curves)
  tf_keras.utils.set_random_seed(0)
  model = tf_keras.Sequential([tf_keras.layers.Dense(2)])
  model.build([None, 3])
  inner = optimizer(0.1)
  step = tf.Variable(0, dtype=tf.int64)
  outer = inner
  if is_wrapped:  # As by `SharedWeightsOptimizer`.
    outer = tf.Module()
    outer._inner_optimizer = inner
  saved = tf.train.Checkpoint(model=model, optimizer=outer, global_step=step)
  for number in steps:
    gradients = [tf.ones_like(v) for v in model.trainable_variables]
    inner.apply_gradients(zip(gradients, model.trainable_variables))
    step.assign(number)
    if number > 10:
      model.variables[0].assign_add(tf.fill([3, 2], weight))
      variables = inner.variables  # A method of a legacy optimizer.
      variables = variables() if callable(variables) else variables
      found = [each for each in variables if each.shape == [3, 2]]
      if number == steps[-1]:  # Before that it would change the weights.
        found[0].assign_add(tf.fill([3, 2], slot))
    saved.write(str(path / f"ckpt-{number}"))
  return path


def _parts(found):
  return {part.kind: part for part in found.checkpoint}


@pytest.mark.parametrize("optimizer", [_LEGACY, _NEW])
def test_what_was_changed_is_what_is_found(tmp_path, optimizer):
  make = lambda name, **changes: _write_run(
    tmp_path / name, optimizer=optimizer, **changes
  )
  base, same = make("base"), make("same")
  found = difference.compare(base, same)
  assert found.is_equal and found.steps == (10, 20, 30)
  assert {kind: part.count for kind, part in _parts(found).items()} == {
    "weights": 2,
    "slots": 4,
    "rest": _parts(found)["rest"].count,
  }
  assert found.compared_curves == 1, "speed is the machine's"
  assert difference.compare(base, make("wrapped", is_wrapped=True)).is_equal

  found = difference.compare(base, make("weights", weight=0.5))
  parts = _parts(found)
  assert len(parts["weights"].differ) == 1 and parts["slots"].is_equal
  assert parts["weights"].largest == pytest.approx(1.0)  # Twice 0.5.
  assert found.first_step == found.first_checkpoint == 20
  assert not found.is_equal

  parts = _parts(difference.compare(base, make("slots", slot=1e-7)))
  assert len(parts["slots"].differ) == 1 and parts["weights"].is_equal


def test_configs_and_curves_and_the_first_step(tmp_path, capsys):
  base = _write_run(tmp_path / "base")
  nan = float("nan")
  found = difference.compare(
    base, _write_run(tmp_path / "other", seed=1, losses=(3.0, 2.5, nan))
  )
  assert found.config == [("task.seed", 0, 1)]
  assert found.curves == {"train/training_loss": (20, 2.0, 2.5)}
  assert found.first_step == 20 and found.first_checkpoint is None
  both = [
    _write_run(tmp_path / name, losses=(3.0, nan, 1.0)) for name in ("x", "y")
  ]
  assert difference.compare(*both).is_equal

  runs = (str(base), str(tmp_path / "other"))
  assert diff.run(diff.Options(runs=runs)) == 1
  shown = capsys.readouterr().out
  assert "task.seed: 0 | 1" in shown and "at step 20, 2.0 | 2.5" in shown
  assert "first step at which they are seen to part: 20" in shown
  assert diff.run(diff.Options(runs=tuple(map(str, both)))) == 0


def test_runs_with_nothing_in_common_are_not_equal(tmp_path, capsys):
  for name in ("a", "b"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "params.yaml").write_text("task: {seed: 0}")
  runs = (str(tmp_path / "a"), str(tmp_path / "b"))
  assert diff.run(diff.Options(runs=runs)) == 1
  assert "nothing to compare" in capsys.readouterr().out


def test_what_is_no_run(tmp_path):
  with pytest.raises(errors.UsageError, match="two run directories, not 1"):
    diff.Options(runs=(str(tmp_path),))
  with pytest.raises(errors.UsageError, match="has no params.yaml"):
    diff.run(diff.Options(runs=(str(tmp_path), str(tmp_path))))
