"""Experiments that are checked before anything runs, and the pre-training ones.

Model Garden's drivers call `validate()` once, after all overrides and before
they touch `model_dir`: an error there leaves nothing on disk. It is the only
validator: commands, studies and both drivers rely on it.

The defaults of `swe/bert_pretraining` and `swe/bert_pretraining_text` are
BERT-large as the paper trains it (section 5.1) on Wikipedia and BookCorpus for
0.5M steps, shared for the first 10% of them.
"""

import dataclasses

import gin

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.modeling import optimization
from official.nlp.configs import bert
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf import fields
from swe_tf import messages
from swe_tf.configs import limits
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.methods import catalog
from swe_tf.methods import gin_bindings
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.tasks import masked_lm
from swe_tf.training import devices

RESTRICTIONS = (
  "task.train_data.is_training != None",
  "task.validation_data.is_training != None",
)

# Section 5.1: the peak is reached at step 10k, of both 0.5M and 1M.
_WARMUP_STEPS = 10_000
# A shorter run warms up for the same fraction as 10k of 0.5M.
_WARMUP_FRACTION = 0.02


@dataclasses.dataclass
class CheckedExperimentConfig(cfg.ExperimentConfig):
  """An experiment that rejects wrong overrides, under any driver."""

  def override(self, override_params, is_strict=True):
    """See base class; strict overrides must match the names and types."""
    if is_strict:
      if hasattr(override_params, "as_dict"):
        override_params = override_params.as_dict()
      override_params = fields.conform(self, override_params)
    super().override(override_params, is_strict)

  def validate(self):
    """See base class; under the stock driver, checks what is around it too.

    That driver goes on to write to `model_dir` and to connect the workers, and
    only then are the task and the trainer made. `swe train` checks all of this
    by itself; other commands need neither the workers nor the data.
    """
    super().validate()
    if gin.config_is_locked():  # By the stock driver; our commands do not.
      limits.check_replicas(self, devices.num_workers(self.runtime))
      if type(self.task) is masked_lm.SharedMaskedLMConfig:  # Not a plug-in's.
        checks.check_exists(self.task.train_data, self.task.validation_data)


@dataclasses.dataclass
class SharingExperimentConfig(CheckedExperimentConfig):
  """An experiment with `task.sharing` whose schedules follow `train_steps`."""

  def validate(self):
    """Fills in what gin, a recipe and `train_steps` set; checks everything."""
    super().validate()
    with errors.part():
      gin_bindings.complete(self.task, catalog.resolve(self).num_layers)
    for check in (follow_train_steps, limits.check, catalog.check):
      with errors.part():
        check(self)


def follow_train_steps(config: cfg.ExperimentConfig) -> None:
  """Sets decay and warm-up from `trainer.train_steps` where they are unset.

  Model Garden's decay starts at step 0, so its warm-up ends below the peak.
  Here the decay starts where the warm-up ends, at the peak.
  """
  steps = config.trainer.train_steps
  optimizer_config = config.trainer.optimizer_config
  warmup = optimizer_config.warmup.get()
  if warmup is not None and warmup.warmup_steps is None:
    fraction = round(_WARMUP_FRACTION * steps)
    warmup.warmup_steps = max(0, min(_WARMUP_STEPS, fraction))
  decay = optimizer_config.learning_rate.get()
  if getattr(decay, "decay_steps", 0) is not None:
    return  # Set by hand, or a schedule without an end.
  if not decay.offset and warmup is not None:
    decay.offset = warmup.warmup_steps
  if decay.offset >= steps:
    # Not an error: a trial of a few steps may end within the warm-up.
    messages.warn(
      "the learning rate never decays: the warm-up takes "
      f"{decay.offset} steps, and trainer.train_steps is {steps}."
    )
  decay.decay_steps = max(1, steps - decay.offset)


def paper_optimization() -> optimization.OptimizationConfig:
  """Returns AdamW with linear warm-up and linear decay to 0 (section 5.1).

  The steps of both follow from `trainer.train_steps`. As in Model Garden, the
  first update is made at 1 / warmup_steps of the peak: at the paper's 0 it
  would change nothing.
  """
  decay = {"initial_learning_rate": 3e-4, "end_learning_rate": 0.0}
  warmup = {"power": 1, "warmup_steps": None}
  return optimization.OptimizationConfig(
    {
      "optimizer": {
        "type": "adamw",
        "adamw": {
          "weight_decay_rate": 0.01,
          "beta_1": 0.9,
          "beta_2": 0.999,
          "epsilon": 1e-7,  # The paper gives neither this one
          "gradient_clip_norm": 1.0,  # nor this; they are Model Garden's.
          "exclude_from_weight_decay": ["LayerNorm", "layer_norm", "bias"],
        },
      },
      "learning_rate": {"type": "polynomial", "polynomial": decay},
      "warmup": {"type": "polynomial", "polynomial": warmup},
    }
  )


def _experiment(train_data, validation_data) -> SharingExperimentConfig:
  size = dataclasses.asdict(sizes.SIZES["large"])
  encoder = registry.bert({"vocab_size": 30522, **size}).config
  return SharingExperimentConfig(
    task=masked_lm.SharedMaskedLMConfig(
      model=bert.PretrainerConfig(encoder=encoder, cls_heads=[]),
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
    restrictions=list(RESTRICTIONS),
  )


@exp_factory.register_config_factory("swe/bert_pretraining")
def bert_pretraining() -> cfg.ExperimentConfig:
  """Pre-trains on the TFRecords that `swe prepare pretraining` writes."""
  make = pretrain_dataloader.BertPretrainDataConfig
  common = dict(use_next_sentence_label=False, max_predictions_per_seq=77)
  return _experiment(
    make(is_training=True, **common), make(is_training=False, **common)
  )


@exp_factory.register_config_factory("swe/bert_pretraining_text")
def bert_pretraining_text() -> cfg.ExperimentConfig:
  """Pre-trains on raw text: tokenized, packed and masked in the graph."""
  make = loaders.PretrainTextDataConfig
  return _experiment(make(is_training=True), make(is_training=False))
