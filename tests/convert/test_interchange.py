"""Stock experiments start from our checkpoints, and ours from stock ones."""

import os

import numpy as np
import pytest
import tensorflow as tf

from official.core import exp_factory
from official.core import task_factory
from official.nlp import train  # noqa: F401 (registers)
from swe_tf import registry  # noqa: F401 (registers)
from tests import tiny

_BERT = {
  "vocab_size": tiny.VOCAB,
  "hidden_size": 8,
  "num_layers": tiny.LAYERS,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": tiny.LENGTH,
}
_ENCODER = {"model": {"encoder": {"type": "bert", "bert": _BERT}}}


def _started(experiment, checkpoint, **model):
  """Returns the model of an experiment that starts from a checkpoint."""
  config = exp_factory.get_exp_config(experiment)
  config.override({"task": {**_ENCODER, "init_checkpoint": str(checkpoint)}})
  config.override({"task": {"model": model}})
  task = task_factory.get_task(config.task)
  model = task.build_model()
  model(model.inputs)
  task.initialize(model)
  return model


def _assert_equal(items, others, names):
  for name in names:
    ours, theirs = items[name].weights, others[name].weights
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs):
      np.testing.assert_array_equal(one.numpy(), other.numpy(), one.name)


@pytest.mark.parametrize("steps", [2, tiny.TAU + 1], ids=["shared", "unshared"])
def test_stock_experiments_start_from_our_checkpoint(tmp_path, steps):
  config = tiny.config_of(
    tiny.overrides(tiny.write_records(str(tmp_path))), {"task": _ENCODER}
  )
  runner = tiny.make_runner(config, str(tmp_path / "run"))
  runner.controller.train(steps)
  runner.controller.save_checkpoint()
  ours = runner.trainer.model.checkpoint_items
  path = tmp_path / "run" / f"ckpt-{steps}"
  stock = _started(
    "bert/sentence_prediction", path, num_classes=2
  ).checkpoint_items
  _assert_equal(ours, stock, ["encoder"])
  # Ours does not predict the next sentence.
  stock = _started("bert/pretraining", path, cls_heads=[]).checkpoint_items
  _assert_equal(ours, stock, ["encoder", "masked_lm"])


def test_ours_start_from_a_stock_checkpoint(tmp_path):
  stock = _started("bert/pretraining", "")
  checkpoint = tf.train.Checkpoint(model=stock, **stock.checkpoint_items)
  path = checkpoint.save(os.path.join(tmp_path, "ckpt"))
  items = stock.checkpoint_items
  ours = _started("swe/bert_pretraining", path).checkpoint_items
  _assert_equal(items, ours, ["encoder", "masked_lm"])
  _assert_equal(items, _started("swe/glue", path).checkpoint_items, ["encoder"])
