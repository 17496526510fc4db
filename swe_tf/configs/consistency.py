"""Checks that an experiment's numbers fit together. Imports no TensorFlow.

Reads an experiment as nested tables: from files and flags alone, before
TensorFlow is imported, and again when the experiment is complete. What is not
known yet is not checked. `methods/checks.py` checks the method, and
`data/checks.py` the data.
"""

from collections.abc import Mapping
from typing import Any

from swe_tf import errors
from swe_tf.modeling import registry

Table = Mapping[str, Any]

# Those of `official.common.distribute_utils`.
STRATEGIES = (
  "off",
  "one_device",
  "mirrored",
  "multi_worker_mirrored",
  "parameter_server",
  "tpu",
)
_PRECISIONS = ("float32", "float16", "bfloat16")
_MASKING = ("random", "whole_word", "next_token")
_TOKENIZERS = ("wordpiece", "character")
_INTERVALS = (
  "steps_per_loop",
  "summary_interval",
  "checkpoint_interval",
  "validation_interval",
)


def check(values: Table, follows_data: bool = False) -> None:
  """Raises unless the numbers of an experiment fit together.

  Args:
    values: The experiment as nested tables.
    follows_data: Whether the data determines the lengths, and the steps and
      intervals that are 0, as in fine-tuning, which checks the lengths itself.

  Raises:
    UsageError: If they do not.
  """
  task, trainer = values.get("task") or {}, values.get("trainer") or {}
  runtime = values.get("runtime") or {}
  _check_runtime(runtime)
  _check_trainer(trainer, 0 if follows_data else 1)
  _check_optimizer(trainer.get("optimizer_config") or {})
  model = task.get("model") or {}
  if "encoder" in model and (model["encoder"] or {}).get("type") is None:
    raise errors.UsageError(
      "task.model.encoder.type is not set; set it to 'any' for BERT as in the "
      "paper."
    )
  encoder = registry.encoder_of(task)
  if encoder is not None and isinstance(encoder.family, registry.Bert):
    _check_encoder(encoder.params)
  sets = {
    f"task.{name}": task.get(name) or {}
    for name in ("train_data", "validation_data")
  }
  used = [p for p, d in sets.items() if d.get("input_path")] or [
    "task.train_data"
  ]
  for place, data in sets.items():
    _check_data(place, data)
    if place in used and not follows_data:
      _check_length(place, data, encoder)
  _at_least(task, "task", {"max_train_examples": 0})
  if (task.get("epochs") or 1) <= 0:
    raise errors.UsageError(f"task.epochs ({task['epochs']}) must be above 0.")


def check_replicas(values: Table) -> None:
  """Raises unless every GPU gets the same number of sequences.

  Not part of `check`, because `swe doctor` first checks that the GPUs exist.
  """
  gpus = (values.get("runtime") or {}).get("num_gpus") or 0
  for name in ("train_data", "validation_data"):
    data = (values.get("task") or {}).get(name) or {}
    batch = data.get("global_batch_size")
    if batch and gpus > 1 and batch % gpus:
      raise errors.UsageError(
        f"task.{name}.global_batch_size ({batch}) cannot be divided among "
        f"{gpus} replicas."
      )


def _at_least(table: Table, place: str, least: Mapping[str, float]) -> None:
  for name, bound in least.items():
    value = table.get(name)
    if value is not None and value < bound:
      raise errors.UsageError(
        f"{place}.{name} ({value}) must be at least {bound}."
      )


def _one_of(table: Table, place: str, name: str, known: tuple[str, ...]):
  value = table.get(name)
  if value and value not in known:
    raise errors.UsageError(
      f"{place}.{name} ({value!r}) must be one of {', '.join(known)}; "
      + errors.nearest(value, known, "choose one of these.")
    )


def _check_runtime(runtime: Table) -> None:
  strategy = runtime.get("distribution_strategy", "mirrored")
  if not isinstance(strategy, str) or strategy.lower() not in STRATEGIES:
    raise errors.UsageError(
      f"runtime.distribution_strategy ({strategy!r}) must be one of "
      f"{', '.join(STRATEGIES)}; "
      + errors.nearest(strategy, STRATEGIES, "choose one of these.")
    )
  gpus = runtime.get("num_gpus") or 0
  _at_least(runtime, "runtime", {"num_gpus": 0, "num_packs": 1})
  if gpus > 1 and strategy.lower() in ("off", "one_device"):
    raise errors.UsageError(
      f"runtime.num_gpus is {gpus}, but runtime.distribution_strategy "
      f"{strategy!r} has one device; set it to 'mirrored'."
    )
  _one_of(runtime, "runtime", "mixed_precision_dtype", _PRECISIONS)
  algorithms = {
    "mirrored": ("nccl", "hierarchical_copy"),
    "multi_worker_mirrored": ("ring", "nccl"),
  }
  if strategy.lower() in algorithms:
    known = algorithms[strategy.lower()]
    _one_of(runtime, "runtime", "all_reduce_alg", known)


def _check_trainer(trainer: Table, least: int) -> None:
  if (trainer.get("train_steps") or 0) < least:
    raise errors.UsageError(
      f"trainer.train_steps ({trainer.get('train_steps')}) must be at least "
      f"{least}: the learning rate and the untie step depend on it."
    )
  _at_least(trainer, "trainer", dict.fromkeys(_INTERVALS, least))
  _at_least(trainer, "trainer", {"max_to_keep": 1, "validation_steps": -1})
  loop, interval = trainer.get("steps_per_loop"), trainer.get(_INTERVALS[1])
  if loop and interval and interval % loop:
    raise errors.UsageError(
      f"trainer.summary_interval ({interval}) must be a multiple of "
      f"trainer.steps_per_loop ({loop})."
    )
  comparisons = ("higher", "lower")
  _one_of(trainer, "trainer", "best_checkpoint_metric_comp", comparisons)


def _chosen(config: Table, name: str) -> tuple[str | None, Table]:
  """Returns the `type` that a one-of config selects, and its parameters."""
  table = config.get(name) or {}
  kind = table.get("type")
  return kind, (table.get(kind) or {}) if kind else {}


def _check_optimizer(config: Table) -> None:
  place = "trainer.optimizer_config"
  for name in ("optimizer", "learning_rate"):
    if name in config and _chosen(config, name)[0] is None:
      raise errors.UsageError(f"{place}.{name}.type is not set; choose one.")
  kind, optimizer = _chosen(config, "optimizer")
  if kind == "adafactor":
    raise errors.UsageError(
      f"{place}.optimizer.type: this version of Model Garden has no adafactor; "
      "use adafactor_keras."
    )
  for name in ("beta_1", "beta_2"):
    if not 0.0 <= (optimizer.get(name) or 0.0) < 1.0:
      raise errors.UsageError(
        f"{place}.optimizer.{kind}.{name} ({optimizer[name]}) must be at least "
        "0 and below 1."
      )
  least = dict.fromkeys(
    ("weight_decay_rate", "gradient_clip_norm", "epsilon", "momentum"), 0
  )
  _at_least(optimizer, f"{place}.optimizer.{kind}", least)
  kind, rate = _chosen(config, "learning_rate")
  names = ("initial_learning_rate", "end_learning_rate", "learning_rate")
  _at_least(rate, f"{place}.learning_rate.{kind}", dict.fromkeys(names, 0))
  _at_least(rate, f"{place}.learning_rate.{kind}", {"decay_steps": 1})
  if rate.get(names[0], 0) is None:
    raise errors.UsageError(
      f"{place}.learning_rate.{kind}.{names[0]} is not set; set the peak."
    )
  kind, warmup = _chosen(config, "warmup")
  _at_least(warmup, f"{place}.warmup.{kind}", {"warmup_steps": 0})


def _check_encoder(params: Table) -> None:
  place = "task.model.encoder"
  _at_least(params, place, dict.fromkeys(registry.SIZES, 1))
  width, heads = params.get("hidden_size"), params.get("num_attention_heads")
  if width and heads and width % heads:
    near = [n for n in range(1, width + 1) if width % n == 0]
    best = sorted(near, key=lambda n: abs(n - heads))[:2]
    raise errors.UsageError(
      f"num_attention_heads ({heads}) of {place} must divide hidden_size "
      f"({width}); choose {' or '.join(map(str, sorted(best)))}."
    )
  for name in ("dropout_rate", "attention_dropout_rate"):
    if not 0.0 <= (params.get(name) or 0.0) < 1.0:
      raise errors.UsageError(
        f"{name} ({params[name]}) of {place} must be at least 0 and below 1."
      )


def _check_data(place: str, data: Table) -> None:
  least = {"global_batch_size": 1, "seq_length": 1}
  least |= {"max_predictions_per_seq": 0, "shuffle_buffer_size": 1}
  _at_least(data, place, least)
  length, predictions = (
    data.get(name) or 0 for name in ("seq_length", "max_predictions_per_seq")
  )
  if length and predictions > length:
    raise errors.UsageError(
      f"{place}.max_predictions_per_seq ({predictions}) must be at most "
      f"seq_length ({length})."
    )
  _one_of(data, place, "masking", _MASKING)
  _one_of(data, place, "tokenizer", _TOKENIZERS)
  if not 0.0 < data.get("masking_rate", 0.15) < 1.0:
    raise errors.UsageError(
      f"{place}.masking_rate ({data['masking_rate']}) must be between 0 and 1."
    )


def _check_length(
  place: str, data: Table, encoder: registry.Encoder | None
) -> None:
  length = data.get("seq_length")
  positions = encoder.positions if encoder is not None else None
  if length and positions and length > positions:
    raise errors.UsageError(
      f"{place}.seq_length ({length}) is more than the positions of the "
      f"encoder ({positions}); shorten it, or set max_position_embeddings of "
      "the encoder."
    )


def merge(*tables: Table) -> dict[str, Any]:
  """Merges nested tables; later ones win.

  >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
  {'a': {'b': 3, 'c': 2}}
  """
  merged: dict[str, Any] = {}
  for table in tables:
    for key, value in table.items():
      both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
      merged[key] = merge(merged[key], value) if both else value
  return merged
