"""`swe/bert_pretraining` and `swe/bert_pretraining_text`.

The defaults are BERT-large as the paper trains it (section 5.1) on Wikipedia
and BookCorpus for 0.5M steps, shared for the first 10% of them.
"""

import dataclasses

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.modeling import optimization
from official.nlp.configs import bert
from official.nlp.data import pretrain_dataloader
from swe_tf.configs import experiment
from swe_tf.data.text import pretrain_text
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.tasks import masked_lm

_RESTRICTIONS = (
  "task.train_data.is_training != None",
  "task.validation_data.is_training != None",
)


def paper_optimization() -> optimization.OptimizationConfig:
  """Returns AdamW with linear warm-up and linear decay to 0 (section 5.1).

  The steps of both follow from `trainer.train_steps`; see `experiment`. As in
  Model Garden, the first update is made at 1 / warmup_steps of the peak: at the
  paper's 0 it would change nothing.
  """
  return optimization.OptimizationConfig(
    {
      "optimizer": {
        "type": "adamw",
        "adamw": {
          "weight_decay_rate": 0.01,
          "beta_1": 0.9,
          "beta_2": 0.999,
          # The paper gives neither of these two; they are Model Garden's.
          "epsilon": 1e-7,
          "gradient_clip_norm": 1.0,
          "exclude_from_weight_decay": ["LayerNorm", "layer_norm", "bias"],
        },
      },
      "learning_rate": {
        "type": "polynomial",
        "polynomial": {
          "initial_learning_rate": 3e-4,
          "end_learning_rate": 0.0,
          "decay_steps": None,
        },
      },
      "warmup": {
        "type": "polynomial",
        "polynomial": {"power": 1, "warmup_steps": None},
      },
    }
  )


def _bert_large() -> bert.PretrainerConfig:
  return bert.PretrainerConfig(
    encoder=registry.bert(
      {"vocab_size": 30522, **dataclasses.asdict(sizes.SIZES["large"])}
    ).config,
    cls_heads=[],
  )


def _experiment(train_data, validation_data):
  return experiment.SharingExperimentConfig(
    task=masked_lm.SharedMaskedLMConfig(
      model=_bert_large(),
      train_data=train_data,
      validation_data=validation_data,
    ),
    trainer=cfg.TrainerConfig(
      train_steps=500_000,
      steps_per_loop=1000,
      summary_interval=1000,
      checkpoint_interval=5000,
      validation_interval=5000,
      validation_steps=64,
      optimizer_config=paper_optimization(),
    ),
    restrictions=list(_RESTRICTIONS),
  )


@exp_factory.register_config_factory("swe/bert_pretraining")
def bert_pretraining() -> cfg.ExperimentConfig:
  """Pre-trains on the TFRecords that `swe prepare pretraining` writes."""
  make = pretrain_dataloader.BertPretrainDataConfig
  common = dict(use_next_sentence_label=False, max_predictions_per_seq=77)
  return _experiment(
    make(is_training=True, **common),
    make(is_training=False, **common),
  )


@exp_factory.register_config_factory("swe/bert_pretraining_text")
def bert_pretraining_text() -> cfg.ExperimentConfig:
  """Pre-trains on raw text: tokenized, packed and masked in the graph."""
  make = pretrain_text.PretrainTextDataConfig
  return _experiment(make(is_training=True), make(is_training=False))
