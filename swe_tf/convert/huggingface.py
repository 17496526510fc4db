"""Converts a BERT between Hugging Face's layout and a Model Garden checkpoint.

Post-LN is `Bert`, Pre-LN with the final layer norm `RobertaPreLayerNorm`.
Neither can hold an encoder with a different embedding width. Heads are written,
but not read. Everything is checked before anything is written.
"""

from collections.abc import Mapping
import pathlib
from typing import Any, NamedTuple

from absl import logging
import numpy as np
import safetensors
from safetensors import numpy as safetensors_numpy
import tensorflow as tf
import tf_keras

from official.modeling import tf_utils
from official.nlp.modeling import layers
from swe_tf import errors
from swe_tf import files
from swe_tf.convert import finetuned
from swe_tf.convert import huggingface_config as theirs
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry

_ENCODER = ("embeddings.", "encoder.", "pooler.", "LayerNorm.")
_HEAD_KERNEL = "masked_lm/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE"


def import_huggingface(
  input_dir: files.PathLike, output_dir: files.PathLike
) -> checkpoint_files.LoadedEncoder:
  """Writes a checkpoint with the key `encoder`, `encoder.yaml`, `vocab.txt`."""
  input_dir = files.as_path(input_dir)
  files.refuse_existing([output_dir])
  params = theirs.read(input_dir)
  # Only ours has a final layer norm.
  encoder = registry.bert(params, "any" if params["norm_first"] else "bert")
  tensors = read_tensors(input_dir)
  needed = theirs.least_parameters(params)
  there = sum(tensor.size for tensor in tensors.values())
  if needed > 10 * there:  # The model might fill the memory.
    raise errors.UsageError(
      f"{input_dir}: config.json says {needed:,} weights, but the files hold "
      f"{there:,}; do they belong together?"
    )
  network = encoder.build()
  load_weights(network, params["num_layers"], tensors, input_dir)
  vocab_file = input_dir / theirs.VOCABULARY
  loaded = checkpoint_files.LoadedEncoder(network, encoder, vocab_file)
  with files.new_directory(output_dir) as scratch:
    checkpoint_files.write_encoder(scratch, loaded)
  return loaded


def read_tensors(directory: files.Path) -> dict[str, np.ndarray]:
  """Returns the weights of an encoder by Hugging Face's names."""
  tensors, path = {}, directory / theirs.WEIGHTS
  try:
    with (
      files.local_copy(path) as local,
      safetensors.safe_open(local, framework="numpy") as archive,
    ):
      for name in archive.keys():  # noqa: SIM118 (no dict)
        # Names may start with that of the architecture (`bert.`), and layer
        # norms may have gamma and beta, as in the oldest files.
        short = name
        for layout in theirs.LAYOUTS.values():
          short = short.removeprefix(layout.prefix)
        short = short.replace("LayerNorm.gamma", "LayerNorm.weight")
        short = short.replace("LayerNorm.beta", "LayerNorm.bias")
        if short.startswith(_ENCODER):
          # Weights may be float16; heads and position ids are left out.
          tensors[short] = archive.get_tensor(name).astype(np.float32)
  except (OSError, TypeError, safetensors.SafetensorError) as error:
    raise errors.UsageError(
      f"cannot read {path}: {str(error).splitlines()[0]}."
    ) from error
  return tensors


def load_weights(
  encoder: tf_keras.layers.Layer,
  num_layers: int,
  tensors: Mapping[str, np.ndarray],
  path: files.PathLike,
) -> None:
  """Fills a Model Garden encoder with the tensors of `path`."""
  weights = theirs.encoder_weights(encoder, num_layers)
  missing = [weight.name for weight in weights if weight.name not in tensors]
  if missing:
    raise errors.UsageError(
      f"{path}: {len(missing)} of {len(weights)} weights are missing, such "
      f"as {missing[0]}; is this a BERT encoder of {num_layers} layers, "
      "with its pooler?"
    )
  beyond = f"encoder.layer.{num_layers}."
  if any(name.startswith(beyond) for name in tensors):
    raise errors.UsageError(
      f"{path}: there is a {beyond[:-1]}, but num_hidden_layers is "
      f"{num_layers} in config.json."
    )
  for weight in weights:
    value = tensors[weight.name]
    if value.shape != weight.shape:
      raise errors.UsageError(
        f"{path}: {weight.name} has shape {value.shape}, but by config.json it "
        f"should be {weight.shape}."
      )
    if not np.isfinite(value).all():
      raise errors.UsageError(
        f"{path}: {weight.name} has values that are not finite."
      )
    weight.variable.assign(weight.from_huggingface(value))


class LanguageHead(NamedTuple):
  """The head of a masked language model: Model Garden's `MaskedLM`."""

  layer: tf_keras.layers.Layer
  activation: str  # Its name in the config.


def read_head(
  loaded: checkpoint_files.LoadedEncoder, checkpoint: str
) -> LanguageHead | None:
  """Returns the head beside an encoder in its checkpoint, if there is one."""
  path = checkpoint_files.find(checkpoint)
  shapes = checkpoint_files.reader(path).get_variable_to_shape_map()
  if _HEAD_KERNEL not in shapes:
    return None
  name = loaded.encoder.task["model"].get("mlm_activation") or "gelu"
  head = layers.MaskedLM(
    loaded.network.get_embedding_table(),
    activation=tf_utils.get_activation(name),
  )
  # Called once to make its weights, which are then read.
  width = shapes[_HEAD_KERNEL][0]
  head(tf.zeros([1, 1, width]), tf.zeros([1, 1], tf.int32))
  checkpoint_files.read_into(path, "a language-model head", masked_lm=head)
  return LanguageHead(head, name)


def _add_task_head(
  tensors: dict[str, np.ndarray],
  config: dict[str, Any],
  layout: theirs.Layout,
  tuned: finetuned.FineTuned,
) -> dict[str, np.ndarray]:
  """Returns the weights with those of a task's head; completes `config`."""
  vocabulary = vocab_lib.Vocabulary.load(tuned.vocab_file)
  if vocabulary.is_of_characters:
    raise errors.UsageError(
      f"{tuned.vocab_file} is a vocabulary of characters, which Hugging Face's "
      "BertTokenizer cannot use; export to savedmodel."
    )

  def weights(layer):
    kernel, bias = layer.trainable_variables
    return np.ascontiguousarray(kernel.numpy().T), bias.numpy()

  # Not every model has one, and not at the same place.
  inner = tuple(tensors.pop(f"pooler.dense.{p}") for p in ("weight", "bias"))
  if tuned.glue is None:
    kind, head = "QuestionAnswering", {}
    head["qa_outputs"] = weights(tuned.model.span_labeling)
    if tuned.config.train_data.version_2_with_negative:
      config["null_score_diff_threshold"] = tuned.threshold
  else:
    kind, classifier = "SequenceClassification", tuned.model.classifier
    # With or without the encoder's pooler it is a dense layer and tanh on the
    # first token's state, and so is that of either architecture.
    if classifier.inner_dim:
      inner = weights(classifier.dense)
    output = weights(classifier.out_proj)
    head = {layout.classifier_inner: inner, layout.classifier_output: output}
    labels = tuned.glue.labels or ("score",)
    config["id2label"] = dict(enumerate(labels))
    config["label2id"] = {label: i for i, label in enumerate(labels)}
  config["architectures"] = [f"{layout.architecture}For{kind}"]
  tensors = {layout.prefix + name: value for name, value in tensors.items()}
  for name, (kernel, bias) in head.items():
    tensors |= {f"{name}.weight": kernel, f"{name}.bias": bias}
  return tensors


def write_huggingface(
  output_dir: pathlib.Path,
  loaded: checkpoint_files.LoadedEncoder,
  head: LanguageHead | finetuned.FineTuned | None = None,
) -> None:
  """Writes an encoder with its head, if Hugging Face has such a one."""
  layout = theirs.layout_of(loaded.network)
  config = theirs.from_encoder(loaded.encoder.config.get(), layout)
  weights = theirs.encoder_weights(loaded.network, config["num_hidden_layers"])
  tensors = {weight.name: weight.to_huggingface() for weight in weights}
  vocabulary = None
  if loaded.vocab_file:
    vocabulary = vocab_lib.Vocabulary.load(loaded.vocab_file)
    if vocabulary.tokens[0] != "[PAD]":
      raise errors.UsageError(
        f"the first token of {loaded.vocab_file} is {vocabulary.tokens[0]!r}, "
        "but Hugging Face's BERT uses it for padding."
      )
    if vocabulary.is_of_characters and not isinstance(
      head, finetuned.FineTuned
    ):
      logging.warning("BertTokenizer cannot use characters: no vocabulary.")
      loaded, vocabulary = loaded._replace(vocab_file=None), None
  lower_case = vocabulary is not None and vocabulary.is_lower_case
  if isinstance(head, finetuned.FineTuned):
    lower_case = head.lower_case
    tensors = _add_task_head(tensors, config, layout, head)
    head = None
  if head is not None:
    # The Pre-LN one is exact there; Model Garden's differs from it by 5e-4.
    fitting = ["gelu", "gelu_new"]
    if layout is theirs.POST_LN:
      fitting = [config["hidden_act"]]  # Its head has the blocks' activation.
    if head.activation not in [theirs.ACTIVATIONS[name] for name in fitting]:
      logging.warning(
        "The language-model head is left out: its activation is %r, and that "
        "of Hugging Face's is %s.",
        head.activation,
        " or ".join(fitting),
      )
      head = None
  if head is not None:
    tensors = {layout.prefix + name: value for name, value in tensors.items()}
    for weight in theirs.head_weights(head.layer, layout):
      tensors[weight.name] = weight.to_huggingface()
    config["architectures"] = [f"{layout.architecture}ForMaskedLM"]
  with files.complete_or_absent(output_dir / theirs.WEIGHTS) as scratch:
    # transformers looks for this format.
    safetensors_numpy.save_file(tensors, scratch, metadata={"format": "pt"})
  files.write_json(output_dir / theirs.CONFIG, config)
  checkpoint_files.write_vocabulary(output_dir, loaded)
  if vocabulary is not None:
    files.write_json(
      output_dir / "tokenizer_config.json",
      {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lower_case,
        "model_max_length": loaded.network.get_config()["max_sequence_length"],
      },
    )
