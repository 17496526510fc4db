"""What the demo trains: a small, deep Pre-LN BERT on characters.

It is `swe/bert_pretraining_text` with other numbers, trained on the docstrings
of the installed packages. The second run is the same without sharing.
"""

from typing import Any

from swe_tf import files
from swe_tf.data.text import docstrings
from swe_tf.methods import catalog
from swe_tf.modeling import registry as encoders

_EXPERIMENT = "swe/bert_pretraining_text"
ENCODER = {
  "hidden_size": 64,
  "num_layers": 12,
  "num_attention_heads": 4,
  "intermediate_size": 128,
  # More than the demo needs: fine-tuning has longer texts, and pairs of them.
  "max_position_embeddings": 128,
  "type_vocab_size": 2,
  # 1/sqrt(width): BERT's 0.02 is meant for a width of 1024.
  "initializer_range": 0.12,
  "dropout_rate": 0.0,
  "attention_dropout_rate": 0.0,
}
DATA = {
  "tokenizer": "character",
  "seq_length": 32,
  "masking_rate": 0.32,
  "global_batch_size": 64,
}
OVERRIDES = {
  "task": {"model": {"mlm_initializer_range": 0.12}},
  "runtime": {"distribution_strategy": "off"},
  "trainer": {
    "train_steps": 700,
    "steps_per_loop": 10,
    "summary_interval": 10,
    "checkpoint_interval": 350,
    "validation_interval": 50,
    "validation_steps": 20,
    "max_to_keep": 2,
    "optimizer_config": {
      "learning_rate": {"polynomial": {"initial_learning_rate": 3e-3}},
      "warmup": {"polynomial": {"warmup_steps": 40}},
    },
  },
}
# Makes the second run the baseline, whatever else is overridden.
_BASELINE = {
  "task": {"sharing": {"mode": catalog.NONE, "recipe": "", "loops": []}}
}


def make_config(
  corpus: docstrings.CorpusPaths | None,
  params_override: str | None,
  is_baseline: bool = False,
):
  """Returns the locked experiment config of one of the runs.

  Args:
    corpus: The text; None to check the overrides before there is one.
    params_override: As for `swe train`; may be empty.
    is_baseline: Whether to share nothing, whatever `params_override` says.

  Raises:
    UsageError: If the run is impossible with these overrides.
  """
  from official.core import exp_factory
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.configs import parsing

  config = exp_factory.get_exp_config(_EXPERIMENT)
  encoder = encoders.encoder_of(config.task.as_dict())
  assert encoder is not None
  layers = [
    OVERRIDES,
    {"task": encoder.overrides(**ENCODER)},
    {"task": {"train_data": DATA, "validation_data": DATA}},
  ]
  if corpus is not None:
    vocab_size = len(files.read_text(corpus.vocab).splitlines())
    layers.append({"task": encoder.overrides(vocab_size=vocab_size)})
    for name, path in (
      ("train_data", corpus.train),
      ("validation_data", corpus.validation),
    ):
      data = {"input_path": path, "vocab_file_path": corpus.vocab}
      layers.append({"task": {name: data}})
  for overrides in layers:
    config.override(overrides, is_strict=True)
  config = parsing.apply_overrides(config, params_override)
  if is_baseline:
    config.override(_BASELINE, is_strict=True)
  config.validate()
  config.lock()
  return config


def check(params_override: str | None) -> dict[str, Any]:
  """Checks the overrides of both runs before anything is written.

  Args:
    params_override: As for `swe train`; may be empty.

  Returns:
    The experiment as nested tables.

  Raises:
    UsageError: If either run is impossible with these overrides.
  """
  make_config(None, params_override, is_baseline=True)
  return make_config(None, params_override).as_dict()
