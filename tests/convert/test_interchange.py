"""Checkpoints there and back: stock experiments, exports, the same outputs."""

import os

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official.core import exp_factory
from official.core import task_factory
from official.nlp import train  # noqa: F401 (registers)
from swe_tf import errors
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.commands import export
from swe_tf.commands import import_
from swe_tf.convert import serving
from swe_tf.modeling import checkpoint_files
from tests import tiny
from tests.convert import samples

_BERT = tiny.overrides("")["task"]["model"]["encoder"]["any"]
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
  config = tiny.config_of(tiny.written(tmp_path), {"task": _ENCODER})
  trainer = tiny.train(config, tmp_path / "run", steps)
  ours = trainer.model.checkpoint_items
  path = tmp_path / "run" / f"ckpt-{steps}"
  stock = _started("bert/sentence_prediction", path, num_classes=2)
  _assert_equal(ours, stock.checkpoint_items, ["encoder"])
  # Ours does not predict the next sentence.
  stock = _started("bert/pretraining", path, cls_heads=[])
  _assert_equal(ours, stock.checkpoint_items, ["encoder", "masked_lm"])


def test_ours_start_from_a_stock_checkpoint(tmp_path):
  stock = _started("bert/pretraining", "")
  checkpoint = tf.train.Checkpoint(model=stock, **stock.checkpoint_items)
  path = checkpoint.save(os.path.join(tmp_path, "ckpt"))
  items = stock.checkpoint_items
  ours = _started("swe/bert_pretraining", path).checkpoint_items
  _assert_equal(items, ours, ["encoder", "masked_lm"])
  _assert_equal(items, _started("swe/glue", path).checkpoint_items, ["encoder"])


@pytest.mark.parametrize("kind", ["bert", "any"])
def test_model_garden(tmp_path, kind):
  """Also of a whole run: a checkpoint with more in it, and `params.yaml`."""
  encoder = samples.encoder(tmp_path, kind, norm_first=kind == "any")
  out = tmp_path / "out"
  with files.new_directory(out) as scratch:
    checkpoint_files.write_encoder(scratch, encoder)
  run = tmp_path / "run"
  path = tf.train.Checkpoint(
    encoder=encoder.network, model=encoder.network, global_step=tf.Variable(7)
  ).write(str(run / "ckpt-7"))
  (run / "params.yaml").write_text((out / "encoder.yaml").read_text())
  for place in (out, path):
    loaded = checkpoint_files.load_encoder(place)
    np.testing.assert_array_equal(
      samples.output(loaded), samples.output(encoder)
    )


def test_the_vocabulary_beside_the_shards_of_a_run_is_found(tmp_path):
  encoder = samples.encoder(tmp_path, num_layers=1)
  run = tmp_path / "run"
  with files.new_directory(run) as scratch:
    checkpoint_files.write_encoder(scratch, encoder)
  vocab = (run / "vocab.txt").rename(tmp_path / "vocab.txt")
  content = yaml.safe_load((run / "encoder.yaml").read_text())
  for paths in (f"{tmp_path}/a.tfrecord, b", [f"{tmp_path}/*.tfrecord", "b"]):
    content["task"]["train_data"] = {"input_path": paths}
    (run / "encoder.yaml").write_text(yaml.safe_dump(content))
    assert checkpoint_files.load_encoder(run).vocab_file == vocab


def test_saved_model(tmp_path):
  encoder = samples.encoder(tmp_path, "any", norm_first=True, num_layers=1)
  serving.write_encoder(tmp_path / "out", encoder)
  loaded = tf.saved_model.load(str(tmp_path / "out"))
  outputs = loaded({k: tf.constant(v) for k, v in samples.INPUTS.items()})
  np.testing.assert_allclose(
    outputs["sequence_output"], samples.output(encoder), atol=1e-5
  )
  np.testing.assert_array_equal(outputs["default"], outputs["pooled_output"])
  assert tf.io.gfile.exists(loaded.vocab_file.asset_path.numpy())


def test_commands_overwrite_nothing(tmp_path):
  out = str(tmp_path)
  for command, flags in ((import_, {"input_dir"}), (export, {"checkpoint"})):
    options = dict.fromkeys(flags, "in") | {"format": "huggingface"}
    with pytest.raises(errors.UsageError, match="already there and is not"):
      command.run(command.Options(output_dir=out, **options))


def test_checkpoint_of_another_size(tmp_path):
  out = tmp_path / "out"
  with files.new_directory(out) as scratch:
    checkpoint_files.write_encoder(scratch, samples.encoder(tmp_path))
  config = out / "encoder.yaml"
  for change, message in (
    (("hidden_size: 6", "hidden_size: 12"), "does not hold the encoder of"),
    (("num_layers: 2", "num_layers: 3"), "does not hold the encoder of"),
    (("type: bert", "type: albert"), "the encoder is 'albert', but only BERT"),
  ):
    other = tmp_path / "other.yaml"
    other.write_text(config.read_text().replace(*change))
    with pytest.raises(errors.UsageError, match=message) as error:
      checkpoint_files.load_encoder(out, other)
    assert "\n" not in str(error.value)
  config.unlink()
  with pytest.raises(errors.UsageError, match="give a config_file"):
    checkpoint_files.load_encoder(out)
