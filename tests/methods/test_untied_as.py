"""`task.sharing.untied_as`: what the layers are right after untying."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny

_TAU = 3


def _run(directory, way, steps):
  """Trains 4 layers from one loop to `steps`; returns the trainer."""
  directory.mkdir(exist_ok=True)
  base = tiny.overrides(tiny.write_records(str(directory)))
  base["task"]["model"]["encoder"]["any"]["num_layers"] = 4
  base["task"]["sharing"] |= {
    "untie_step": _TAU,
    "loops": [{"loops": 1}],
    "untied_as": way,
  }
  config = tiny.config_of(base)
  trainer = tiny.make_runner(config, str(directory / "model")).trainer
  trainer.train(tf.constant(steps))
  return trainer


def _kernels(trainer):
  """Returns the kernels of all layers, by the name in the first."""
  blocks = trainer.model.encoder_network.transformer_layers
  rows = zip(*(block.trainable_variables for block in blocks))
  every = {row[0].name: [v.numpy() for v in row] for row in rows}
  return {name: row for name, row in every.items() if "kernel" in name}


@pytest.mark.parametrize("way", ["copies", "noise", "redraw", "identity"])
def test_the_first_layer_stays_and_the_others_part(tmp_path, way):
  trainer = _run(tmp_path, way, _TAU)
  assert trainer.phase == "unshared"
  for name, (first, *others) in _kernels(trainer).items():
    for other in others:
      if way == "identity" and "output/" in name:
        np.testing.assert_array_equal(other, 0)
        continue
      cosine = np.vdot(first, other) / np.sqrt(
        np.vdot(first, first) * np.vdot(other, other)
      )
      low, high = {
        "copies": (1.0 - 1e-6, 1.0 + 1e-6),
        "noise": (0.6, 0.99),
        "redraw": (0.1, 0.9),
        "identity": (-0.7, 0.7),
      }[way]
      assert low <= cosine <= high, (name, cosine)
    if way != "copies" and not (way == "identity" and "output/" in name):
      assert not np.array_equal(others[0], others[1])
  if way == "identity":  # It computes what the one layer did.
    shallow = trainer._phases._views[1]  # pylint: disable=protected-access
    batch = next(
      iter(trainer.task.build_inputs(trainer.config.task.train_data))
    )
    whole, one = (m(batch)["mlm_logits"] for m in (trainer.model, shallow))
    np.testing.assert_allclose(whole, one, rtol=1e-4, atol=1e-5)


def test_what_is_drawn_depends_on_the_seed_alone(tmp_path):
  first, again = (
    tiny.final_state(_run(tmp_path / str(i), "redraw", 5)) for i in range(2)
  )
  for name, value in first.items():
    np.testing.assert_array_equal(value, again[name])
