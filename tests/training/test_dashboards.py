"""TensorBoard's layout and the curves of layers, read back from the files."""

import re

import numpy as np
import pytest
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata

from swe_tf.analysis import scalars
from swe_tf.modeling import registry
from tests import tiny

_INTERVAL, _TAU = 4, 5


def _layout(model_dir):
  accumulator = event_accumulator.EventAccumulator(model_dir).Reload()
  (event,) = accumulator.Tensors(metadata.CONFIG_SUMMARY_TAG)
  return layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])


def _weights(trainer):
  """Returns each layer's weights as one vector."""
  layers = registry.blocks_of(trainer.model)
  rows = ([v.numpy().ravel() for v in x.trainable_variables] for x in layers)
  return np.array([np.concatenate(row) for row in rows])


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory):
  """A run that is untied between two summaries, and its weights at each."""
  root = tmp_path_factory.mktemp("run")
  base = tiny.written(root / "records", sharing={"untie_step": _TAU})
  base["trainer"] |= {"steps_per_loop": 2, "summary_interval": _INTERVAL}
  config = tiny.config_of(base)
  runner = tiny.make_runner(config, root / "model", mode="train_and_eval")
  weights = {}
  for step in range(_INTERVAL, tiny.STEPS + 1, _INTERVAL):
    runner.controller.train(steps=step, checkpoint_at_completion=False)
    weights[step] = _weights(runner.trainer)
  runner.controller.evaluate(steps=1)
  return root / "model", weights


def test_the_curves_of_layers_are_those_of_their_weights(run):
  model_dir, weights = run
  curves = scalars.read_scalars(str(model_dir / "train"))
  norms = {step: np.linalg.norm(each, axis=1) for step, each in weights.items()}
  for layer in range(tiny.LAYERS):
    found = dict(curves[f"layers/update/{layer:02d}"])
    assert list(found) == [8, 12], "only where a summary is written"
    for step, value in found.items():
      moved = weights[step][layer] - weights[step - _INTERVAL][layer]
      expected = np.linalg.norm(moved) / norms[step][layer]
      assert value == pytest.approx(expected, rel=1e-4) and value > 0
    found = dict(curves[f"layers/distance/{layer:02d}"])
    assert list(found) == [4, 8, 12]
    assert found[4] == 0.0, "shared"
    for step, value in found.items():
      apart = weights[step][layer] - weights[step].mean(0)
      expected = np.linalg.norm(apart) / norms[step][layer]
      assert value == pytest.approx(expected, rel=1e-4, abs=1e-7)
    assert found[12] > 0


def test_every_chart_has_a_curve_and_every_curve_of_the_method_a_chart(run):
  model_dir, _ = run
  tags = {
    tag
    for part in ("train", "validation")
    for tag in scalars.read_scalars(str(model_dir / part))
  }
  patterns = [
    pattern
    for category in _layout(str(model_dir)).category
    for chart in category.chart
    for pattern in chart.multiline.tag
  ]
  # As the plug-in does: from the beginning of a tag.
  shown = {p: {tag for tag in tags if re.match(p, tag)} for p in patterns}
  assert [p for p, found in shown.items() if not found] == []
  of_method = {tag for tag in tags if tag.startswith(("sharing/", "layers/"))}
  hidden = of_method - set.union(*shown.values())
  assert hidden == {"sharing/untie_step"}, "a constant"
