"""The curves of layers, read back from the event files."""

import numpy as np
import pytest

from swe_tf.analysis import scalars
from swe_tf.modeling import registry
from tests import tiny

_INTERVAL, _TAU = 4, 5


def _weights(trainer):
  """Returns each layer's weights as one vector."""
  layers = registry.blocks_of(trainer.model)
  rows = ([v.numpy().ravel() for v in x.trainable_variables] for x in layers)
  return np.array([np.concatenate(row) for row in rows])


def test_the_curves_of_layers_are_those_of_their_weights(tmp_path):
  """A run that is untied between two summaries, and its weights at each."""
  base = tiny.written(tmp_path / "records", sharing={"untie_step": _TAU})
  base["trainer"] |= {"steps_per_loop": 2, "summary_interval": _INTERVAL}
  runner = tiny.make_runner(tiny.config_of(base), tmp_path / "model")
  weights = {}
  for step in range(_INTERVAL, tiny.STEPS + 1, _INTERVAL):
    runner.controller.train(steps=step, checkpoint_at_completion=False)
    weights[step] = _weights(runner.trainer)

  curves = scalars.read_scalars(str(tmp_path / "model/train"))
  for layer in range(tiny.LAYERS):
    found = dict(curves[f"layers/distance/{layer:02d}"])
    assert list(found) == [4, 8, 12], "only where a summary is written"
    assert found[4] == 0.0, "shared"
    for step, value in found.items():
      mine = weights[step][layer]
      apart = np.linalg.norm(mine - weights[step].mean(0))
      expected = apart / np.linalg.norm(mine)
      assert value == pytest.approx(expected, rel=1e-4, abs=1e-7)
    assert found[12] > 0
