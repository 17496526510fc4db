"""What the values of an experiment may be, and how they must fit together.

`LIMITS` is the one table of bounds and choices; `check` also compares fields
with each other. `methods/catalog.py` checks the method, `data/checks.py` the
data.
"""

from official.core import config_definitions as cfg
from official.modeling import tf_utils
from swe_tf import errors
from swe_tf import fields
from swe_tf.methods import config as config_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry
from swe_tf.training import micro_batches

_DATA = ("train_data", "validation_data")
_OPTIMIZER = "trainer.optimizer_config.optimizer.*"
_RATE = "trainer.optimizer_config.learning_rate.*"
_INTERVALS = ("summary", "checkpoint", "validation")
_STEPS = (
  "train_steps",
  "steps_per_loop",
  *(f"{i}_interval" for i in _INTERVALS),
)
_WARMUP = "trainer.optimizer_config.warmup.*"
_EMA = "trainer.optimizer_config.ema"
_RATES = (
  "weight_decay_rate",
  "weight_decay",
  "gradient_clip_norm",
  "global_clipnorm",
  "epsilon",
)
_AT_LEAST_0, _AT_LEAST_1 = fields.Limit(least=0), fields.Limit(least=1)
_ABOVE_0 = fields.Limit(above=0)
_BELOW_1 = fields.Limit(least=0, below=1)
# Above them lies no model, but a slip of the finger that would fill the memory.
_SIZE = fields.Limit(least=1, below=10**9)
_LAYERS = fields.Limit(least=1, below=10**5)

LIMITS = {
  **config_lib.LIMITS,
  **dict.fromkeys(
    (
      "trainer.optimizer_config.optimizer.type",
      "trainer.optimizer_config.learning_rate.type",
      "task.model.encoder.type",
    ),
    fields.Limit(required=True),
  ),
  # Those of `official.common.distribute_utils`, but for `parameter_server`:
  # its workers do not wait for each other, so no step is that of the method.
  "runtime.distribution_strategy": fields.Limit(
    choices=("off", "one_device", "mirrored", "multi_worker_mirrored", "tpu"),
    required=True,
  ),
  "runtime.num_gpus": _AT_LEAST_0,
  "runtime.num_packs": _AT_LEAST_1,
  "runtime.mixed_precision_dtype": fields.Limit(
    choices=("float32", "float16", "bfloat16")
  ),
  "trainer.max_to_keep": _AT_LEAST_1,
  "trainer.validation_steps": fields.Limit(least=-1),
  "trainer.best_checkpoint_metric_comp": fields.Limit(
    choices=("higher", "lower")
  ),
  **{
    f"{_OPTIMIZER}.{name}": _BELOW_1
    for name in ("beta_1", "beta_2", "momentum", "rho")
  },
  **{
    f"{_OPTIMIZER}.{name}": _ABOVE_0
    for name in ("clipnorm", "clipvalue", "clip_threshold")
  },
  f"{_EMA}.average_decay": _BELOW_1,
  **dict.fromkeys(
    (
      *(f"{_OPTIMIZER}.{name}" for name in _RATES),
      *(f"{_RATE}.{name}learning_rate" for name in ("end_", "")),
      *(f"{_WARMUP}.warmup_{name}" for name in ("steps", "learning_rate")),
      f"{_EMA}.start_step",
    ),
    _AT_LEAST_0,
  ),
  **dict.fromkeys(
    ("task.seed", *(f"task.{data}.seed" for data in _DATA)),
    fields.Limit(least=0, below=2**32),  # As numpy takes it.
  ),
  f"{_RATE}.initial_learning_rate": fields.Limit(least=0, required=True),
  f"{_RATE}.decay_steps": _AT_LEAST_1,
  "trainer.optimizer_config.learning_rate.polynomial.power": _ABOVE_0,
  f"{_WARMUP}.power": _ABOVE_0,
  **{f"task.model.encoder.*.{name}": _SIZE for name in registry.SIZES},
  "task.model.encoder.*.num_layers": _LAYERS,
  "task.model.encoder.*.initializer_range": _ABOVE_0,
  "task.model.encoder.*.dropout_rate": _BELOW_1,
  "task.model.encoder.*.attention_dropout_rate": _BELOW_1,
  "task.epochs": _ABOVE_0,
  "task.micro_batches": _AT_LEAST_1,
  "task.max_train_examples": _AT_LEAST_0,
  **{
    f"task.{data}.{name}": limit
    for data in _DATA
    for name, limit in {
      "global_batch_size": _AT_LEAST_1,
      "seq_length": _AT_LEAST_1,
      "max_predictions_per_seq": _AT_LEAST_0,
      "shuffle_buffer_size": _AT_LEAST_1,
      "masking": fields.Limit(choices=("random", "whole_word")),
      "masking_rate": fields.Limit(above=0, below=1),
      "tokenizer": fields.Limit(choices=("wordpiece", "character")),
    }.items()
  },
}


def check(config: cfg.ExperimentConfig, follows_data: bool = False) -> None:
  """Raises unless the values of an experiment are possible together.

  In fine-tuning, lengths follow the data, and so do steps that are 0.
  """
  optimizer = config.trainer.optimizer_config.optimizer.type
  if optimizer == "adafactor":
    errors.fault(
      "trainer.optimizer_config.optimizer.type: this version of Model Garden "
      "has no adafactor; use adafactor_keras."
    )
  steps = fields.Limit(least=0 if follows_data else 1)
  fields.check(config, {f"trainer.{name}": steps for name in _STEPS} | LIMITS)
  runtime = config.runtime
  gpus, strategy = runtime.num_gpus, runtime.distribution_strategy
  if gpus > 1 and strategy in ("off", "one_device"):
    errors.fault(
      f"runtime.num_gpus is {gpus}, but runtime.distribution_strategy "
      f"{strategy!r} has one device; set it to 'mirrored'."
    )
  with errors.part():
    micro_batches.check(config.task, max(1, gpus))
  trainer = config.trainer
  if trainer.steps_per_loop and (
    trainer.summary_interval % trainer.steps_per_loop
  ):
    errors.fault(
      f"trainer.summary_interval ({trainer.summary_interval}) must be a "
      f"multiple of trainer.steps_per_loop ({trainer.steps_per_loop})."
    )
  encoder = registry.encoder_of(config.task.as_dict())
  params = encoder.params if encoder is not None else {}
  if encoder is not None and encoder.is_bert:
    width, heads = params.get("hidden_size"), params.get("num_attention_heads")
    if width and heads and width % heads:
      errors.fault(
        f"num_attention_heads ({heads}) of task.model.encoder must divide "
        f"hidden_size ({width})."
      )
  model = getattr(config.task, "model", None)
  for name, value in (
    ("the encoder's hidden_activation", params.get("hidden_activation")),
    ("task.model.mlm_activation", getattr(model, "mlm_activation", None)),
  ):
    try:
      tf_utils.get_activation(value)
    except (TypeError, ValueError):
      errors.fault(
        f"{name} ({value!r}) is not known to Keras; see tf_keras.activations."
      )
  configs = {name: getattr(config.task, name) for name in _DATA}
  used = [n for n, data in configs.items() if data.input_path] or [_DATA[0]]
  positions = encoder.positions if encoder and not follows_data else None
  for name, data in configs.items():
    length = getattr(data, "seq_length", None)
    predictions = getattr(data, "max_predictions_per_seq", None)
    if length and predictions and predictions > length:
      errors.fault(
        f"task.{name}.max_predictions_per_seq ({predictions}) must be at most "
        f"seq_length ({length})."
      )
    if name in used and length and positions and length > positions:
      errors.fault(
        f"task.{name}.seq_length ({length}) is more than the positions of the "
        f"encoder ({positions}); shorten it, or set max_position_embeddings of "
        "the encoder."
      )
    if length in (None, positions) or name not in used or not positions:
      continue
    if encoder and encoder.has_one_length:
      errors.fault(
        f"task.{name}.seq_length ({length}) must be the positions of the "
        f"encoder ({positions}): {encoder.kind!r} takes one length only."
      )


def check_replicas(config: cfg.ExperimentConfig, workers: int = 1) -> None:
  """Raises unless every replica gets the same number of sequences.

  Not part of `check`, because `swe doctor` first checks that the GPUs exist.
  """
  replicas = workers * max(1, config.runtime.num_gpus)
  for name in _DATA:
    batch = getattr(config.task, name).global_batch_size
    if batch and batch % replicas:
      errors.fault(
        f"task.{name}.global_batch_size ({batch}) cannot be divided among "
        f"{replicas} replicas."
      )


def check_inputs(
  config: cfg.ExperimentConfig, *needed: str, resumes: bool = False
) -> None:
  """Raises unless the `needed` data (`train_data`, ...) is given.

  `init_checkpoint` must be there too, unless the run has one of its own. The
  task checks whether the data is sound; for fine-tuning, `validate()` did.
  """
  task = config.task
  if "validation_data" in needed and not config.trainer.validation_steps:
    raise errors.UsageError(
      "trainer.validation_steps is 0, so nothing is evaluated; set it to -1 "
      "for all of the data."
    )
  if hasattr(task, "data_dir"):
    return
  for name in needed:
    data = getattr(task, name)
    if not (data.input_path or data.tfds_name):
      raise errors.UsageError(
        f"task.{name}.input_path is not set; name the files, such as "
        "DIR/*.tfrecord."
      )
  if task.init_checkpoint and not resumes:
    checkpoint_files.find(task.init_checkpoint, "task.init_checkpoint")
