"""What the demo trains: a small, deep Pre-LN BERT on characters.

It is `swe/bert_pretraining_text` with other numbers, trained on the docstrings
of the installed packages. The second run is the same without sharing.
"""

from typing import Any

from swe_tf import files
from swe_tf.configs import early
from swe_tf.configs import override_text
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
  corpus: docstrings.CorpusPaths,
  params_override: str | None,
  is_baseline: bool = False,
):
  """Returns the locked experiment config of one of the runs.

  Args:
    corpus: The text.
    params_override: As for `swe train`; may be empty.
    is_baseline: Whether to share nothing, whatever `params_override` says.
  """
  from official.core import exp_factory
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.configs import parsing

  vocab_size = len(files.read_text(corpus.vocab).splitlines())
  data = {"vocab_file_path": corpus.vocab, **DATA}
  config = exp_factory.get_exp_config(_EXPERIMENT)
  encoder = encoders.encoder_of(config.task.as_dict())
  assert encoder is not None
  for overrides in (
    OVERRIDES,
    {"task": encoder.overrides(vocab_size=vocab_size, **ENCODER)},
    {
      "task": {
        "train_data": {"input_path": corpus.train, **data},
        "validation_data": {"input_path": corpus.validation, **data},
      }
    },
  ):
    config.override(overrides, is_strict=True)
  config = parsing.apply_overrides(config, params_override)
  if is_baseline:
    config.override(_BASELINE, is_strict=True)
  config.validate()
  config.lock()
  return config


def check(params_override: str | None) -> dict[str, Any]:
  """Checks overrides before TensorFlow is imported.

  Args:
    params_override: As for `swe train`; may be empty.

  Returns:
    The experiment as nested tables.

  Raises:
    UsageError: If either run is impossible with these overrides.
  """
  encoder = encoders.bert({}).overrides(**ENCODER)
  data = {"train_data": DATA, "validation_data": DATA}
  layers = [
    ("the demo", OVERRIDES),
    ("the demo", {"task": {**encoder, **data}}),
    ("--params_override", override_text.parse(params_override)),
  ]
  values = early.check_layers(_EXPERIMENT, layers)
  early.check_layers(_EXPERIMENT, [*layers, ("the baseline", _BASELINE)])
  assert values is not None  # The experiment is one of ours.
  return values
