"""Exports against `transformers` itself, which `make test-all` installs.

A run is exported twice, while its layers are tied and after they were untied,
and both implementations read the same sentences.
"""

import os
import re

import numpy as np
import pytest
import tensorflow as tf

from official.core import train_utils
from swe_tf.commands import export
from swe_tf.convert import huggingface
from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import encoder
from tests import tiny

torch = pytest.importorskip("torch")

_SENTENCES, _TOLERANCE = 32, 1e-4
_APPROXIMATE = 1e-3  # The Pre-LN head's GELU is exact there, by tanh here.
_LENGTH = 64
_KERNEL = r"encoder/_transformer_layers/\d/_output_dense/kernel/\.ATTRIBUTES"


@pytest.fixture(scope="module", name="transformers")
def fixture_transformers(tmp_path_factory):
  # Where it copies the code of a model to; it asks when it is imported.
  os.environ.setdefault("HF_HOME", str(tmp_path_factory.mktemp("hf")))
  os.environ.setdefault("HF_HUB_OFFLINE", "1")
  return pytest.importorskip("transformers")


@pytest.fixture(scope="module", name="sentences")
def fixture_sentences():
  found: list[str] = []
  for document in docstrings.documents([]):
    found += document.splitlines()
    if len(found) >= _SENTENCES:
      return found[:_SENTENCES]
  raise AssertionError("no docstrings")


@pytest.fixture(scope="module", name="vocab")
def fixture_vocab(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  letters = [chr(i) for i in range(33, 127) if not chr(i).isupper()]
  pieces = [f"##{letter}" for letter in letters if letter.isalnum()]
  words = ["the", "is", "of", "##ing", "return", "##s"]
  tokens = [*vocab_lib.SPECIAL_TOKENS, *letters, *pieces, *words]
  path.write_text("\n".join(dict.fromkeys(tokens)))
  return path


_VARIANTS = {
  "pre_ln": {},
  "pre_ln_exact": {"hidden_activation": encoder.EXACT_GELU},
  "post_ln": {"norm_first": False},
}


@pytest.fixture(scope="module", name="run", params=list(_VARIANTS))
def fixture_run(request, tmp_path_factory, vocab):
  """The directory of a run with a checkpoint in each phase."""
  folder = tmp_path_factory.mktemp(request.param)
  encoder = {
    "vocab_size": len(vocab_lib.Vocabulary.load(vocab)),
    "max_position_embeddings": _LENGTH,
    **_VARIANTS[request.param],
  }
  task = tiny.encoder(hidden_size=16, num_layers=4, **encoder)
  if "hidden_activation" in encoder:
    task["model"]["mlm_activation"] = encoder["hidden_activation"]
  layers = {"task": task, "trainer": {"max_to_keep": tiny.STEPS}}
  config = tiny.config_of(tiny.written(folder), layers)
  train_utils.serialize_config(config, str(folder / "run"))
  tiny.train(config, folder / "run")
  return folder / "run"


def _inputs(ids, mask):
  return dict(
    input_word_ids=tf.constant(ids),
    input_mask=tf.constant(mask),
    input_type_ids=tf.zeros_like(ids),
  )


def _logits(checkpoint, ids, mask):
  """Returns what Model Garden makes of token ids: states and logits."""
  loaded = checkpoint_files.load_encoder(checkpoint)
  head = huggingface.read_head(loaded, checkpoint)
  outputs = loaded.network(_inputs(ids, mask))
  assert head is not None
  everywhere = tf.range(ids.shape[1])[None] * tf.ones_like(ids)
  logits = head.layer(outputs["sequence_output"], everywhere)
  return outputs, logits


@pytest.mark.parametrize("step", [tiny.TAU - 2, tiny.STEPS])
def test_masked_lm(run, step, vocab, sentences, transformers, tmp_path):
  checkpoint, out = str(run / f"ckpt-{step}"), tmp_path / "hf"
  places = dict(checkpoint=checkpoint, output_dir=str(out), vocab=str(vocab))
  export.run(export.Options(format="huggingface", **places))
  tied = tf.train.load_checkpoint(checkpoint)
  kernels = [
    tied.get_tensor(name)
    for name in tied.get_variable_to_shape_map()
    if re.match(_KERNEL, name)
  ]
  assert len(kernels) == 4
  assert np.array_equal(kernels[0], kernels[1]) == (step < tiny.TAU)

  tokenizer = transformers.AutoTokenizer.from_pretrained(out)
  batch = tokenizer(
    sentences, padding=True, truncation=True, return_tensors="pt"
  )
  ids = batch["input_ids"].numpy().astype(np.int32)
  mask = batch["attention_mask"].numpy().astype(np.int32)
  ours = tokenizers.WordPieceTokenizer(vocab_lib.Vocabulary.load(vocab))
  expected_ids = ours.tokenize(tf.constant(sentences))[:, : _LENGTH - 2]
  for row, real, expected in zip(ids, mask, expected_ids):
    np.testing.assert_array_equal(row[real > 0][1:-1], expected.numpy())

  model = transformers.AutoModelForMaskedLM.from_pretrained(out).eval()
  with torch.no_grad():
    found = model(
      input_ids=torch.tensor(ids.astype(np.int64)),
      attention_mask=torch.tensor(mask.astype(np.int64)),
      output_hidden_states=True,
    )
  outputs, logits = _logits(checkpoint, ids, mask)
  real = mask > 0
  # The last of transformers' is not normalised yet if it is Pre-LN; the
  # logits tell whether the norm is right.
  pairs = list(zip(outputs["encoder_outputs"], found.hidden_states[1:]))[:-1]
  states = max(np.abs(a.numpy() - b.numpy())[real].max() for a, b in pairs)
  worst = np.abs(logits.numpy() - found.logits.numpy())[real].max()
  print(f"{run.parent.name} {step}: hidden {states:.1e}, logits {worst:.1e}")
  assert len(ids) == _SENTENCES and len(pairs) == 3
  assert np.abs(logits.numpy()[real]).max() > 0.1, "nothing to compare"
  is_approximate = run.parent.name.startswith("pre_ln0")
  assert states < _TOLERANCE
  assert worst < (_APPROXIMATE if is_approximate else _TOLERANCE)

  back = huggingface.import_huggingface(out, tmp_path / "back")
  again = back.network(_inputs(ids, mask))
  np.testing.assert_array_equal(
    again["sequence_output"], outputs["sequence_output"]
  )
