"""Exports read back: the same weights, the same outputs."""

import json

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy
import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import export
from swe_tf.commands import import_
from swe_tf.convert import huggingface
from swe_tf.convert import saved_model_export
from swe_tf.modeling import encoder_files
from swe_tf.modeling import registry

_PARAMS = {
  "vocab_size": 11,
  "hidden_size": 6,
  "num_layers": 2,
  "num_attention_heads": 3,
  "intermediate_size": 10,
  "max_position_embeddings": 7,
  "type_vocab_size": 2,
  "hidden_activation": "gelu",
  "norm_first": False,
}
_INPUTS = {
  "input_word_ids": np.array([[2, 5, 6, 3, 0]], np.int32),
  "input_mask": np.array([[1, 1, 1, 1, 0]], np.int32),
  "input_type_ids": np.array([[0, 0, 1, 1, 0]], np.int32),
}


def _encoder(tmp_path, encoder_type="bert", **params):
  vocab = tmp_path / "vocab.txt"
  vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
  encoder = registry.bert({**_PARAMS, **params}, encoder_type)
  network = encoder.build()
  rng = np.random.default_rng(0)
  for variable in network.trainable_variables:
    variable.assign(rng.normal(size=variable.shape))
  return encoder_files.LoadedEncoder(network, encoder, vocab)


def _output(encoder):
  return encoder.network(_INPUTS)["sequence_output"].numpy()


@pytest.mark.parametrize("norm_first", [False, True])
def test_huggingface_and_back(tmp_path, norm_first):
  kind = "any" if norm_first else "bert"
  encoder = _encoder(tmp_path, kind, norm_first=norm_first)
  out = tmp_path / "hf"
  out.mkdir()
  huggingface.write_huggingface(out, encoder)
  assert json.loads((out / "config.json").read_text())["hidden_act"] == (
    "gelu_new"
  )
  path = out / "model.safetensors"
  assert path.stat().st_mode == (out / "config.json").stat().st_mode
  tensors = safetensors_numpy.load_file(path)
  assert tensors["encoder.layer.1.intermediate.dense.weight"].shape == (10, 6)
  back = huggingface.import_huggingface(out, tmp_path / "back")
  np.testing.assert_array_equal(_output(back), _output(encoder))


@pytest.mark.parametrize(
  "encoder_type, params, message",
  [
    ("bert", {"norm_first": True}, "Pre-LN without a final layer norm"),
    ("any", {"norm_first": True, "causal": True}, "causal"),
    ("bert", {"embedding_size": 4}, "no place for .*embedding_projection"),
    ("bert", {"hidden_activation": "swish"}, "no name for .*'swish'"),
  ],
)
def test_what_huggingface_cannot_hold(tmp_path, encoder_type, params, message):
  encoder = _encoder(tmp_path, encoder_type, **params)
  with pytest.raises(errors.UsageError, match=message):
    huggingface.write_huggingface(tmp_path, encoder)


@pytest.mark.parametrize("encoder_type", ["bert", "any"])
def test_model_garden(tmp_path, encoder_type):
  """Also of a whole run: a checkpoint with more in it, and `params.yaml`."""
  encoder = _encoder(tmp_path, encoder_type, norm_first=encoder_type == "any")
  out = tmp_path / "out"
  with files.new_directory(out) as scratch:
    encoder_files.write_encoder(scratch, encoder)
  loaded = encoder_files.load_encoder(out)
  np.testing.assert_array_equal(_output(loaded), _output(encoder))

  run = tmp_path / "run"
  path = tf.train.Checkpoint(
    encoder=encoder.network, model=encoder.network, global_step=tf.Variable(7)
  ).write(str(run / "ckpt-7"))
  (run / "params.yaml").write_text((out / "encoder.yaml").read_text())
  np.testing.assert_array_equal(
    _output(encoder_files.load_encoder(path)), _output(encoder)
  )


def test_saved_model(tmp_path):
  encoder = _encoder(tmp_path, "any", norm_first=True, num_layers=1)
  saved_model_export.write_saved_model(tmp_path / "out", encoder)
  loaded = tf.saved_model.load(str(tmp_path / "out"))
  outputs = loaded(
    {name: tf.constant(value) for name, value in _INPUTS.items()}
  )
  np.testing.assert_allclose(
    outputs["sequence_output"], _output(encoder), atol=1e-5
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
    encoder_files.write_encoder(scratch, _encoder(tmp_path))
  config = out / "encoder.yaml"
  for change, message in (
    (("hidden_size: 6", "hidden_size: 12"), "does not hold the encoder of"),
    (("num_layers: 2", "num_layers: 3"), "does not hold the encoder of"),
    (("type: bert", "type: albert"), "type 'albert', but only BERT"),
  ):
    other = tmp_path / "other.yaml"
    other.write_text(config.read_text().replace(*change))
    with pytest.raises(errors.UsageError, match=message) as error:
      encoder_files.load_encoder(out, other)
    assert "\n" not in str(error.value)
  with pytest.raises(errors.UsageError, match="no checkpoint at .*/nowhere;"):
    encoder_files.load_encoder(tmp_path / "nowhere")
  config.unlink()
  with pytest.raises(errors.UsageError, match="give a config_file"):
    encoder_files.load_encoder(out)
