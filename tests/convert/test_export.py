"""Exports read back: the same weights, the same outputs."""

import numpy as np
import pytest
import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import export
from swe_tf.commands import import_
from swe_tf.convert import saved_model_export
from swe_tf.modeling import checkpoint_files
from tests.convert import samples


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


def test_saved_model(tmp_path):
  encoder = samples.encoder(tmp_path, "any", norm_first=True, num_layers=1)
  saved_model_export.write_saved_model(tmp_path / "out", encoder)
  loaded = tf.saved_model.load(str(tmp_path / "out"))
  outputs = loaded(
    {name: tf.constant(value) for name, value in samples.INPUTS.items()}
  )
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
  with pytest.raises(errors.UsageError, match="no checkpoint at .*/nowhere;"):
    checkpoint_files.load_encoder(tmp_path / "nowhere")
  config.unlink()
  with pytest.raises(errors.UsageError, match="give a config_file"):
    checkpoint_files.load_encoder(out)
