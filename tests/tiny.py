"""A BERT and a data set so small that an experiment takes seconds."""

import os

import numpy as np
import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.nlp.tasks import masked_lm
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.sharing import slots
from swe_tf.sharing import wrapper
from swe_tf.training import runner

VOCAB, LENGTH, PREDICTIONS = 50, 16, 3
LAYERS, TAU, STEPS = 2, 7, 12


def write_records(directory, per_file=40, real_predictions=(PREDICTIONS,)):
  """Writes random masked examples; returns their glob.

  `real_predictions` says, by turns, how many predictions are not padding.
  """
  rng = np.random.default_rng(0)

  def ints(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

  for i in range(3):
    path = os.path.join(directory, f"records-{i}.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
      for j in range(per_file):
        real = real_predictions[j % len(real_predictions)]
        positions = rng.choice(LENGTH - 2, PREDICTIONS, replace=False) + 1
        features = {
          "input_ids": ints(rng.integers(5, VOCAB, LENGTH)),
          "input_mask": ints([1] * LENGTH),
          "segment_ids": ints([0] * LENGTH),
          "masked_lm_positions": ints(positions),
          "masked_lm_ids": ints(rng.integers(5, VOCAB, PREDICTIONS)),
          "next_sentence_labels": ints([j % 2]),
          "masked_lm_weights": tf.train.Feature(
            float_list=tf.train.FloatList(
              value=[float(k < real) for k in range(PREDICTIONS)]
            )
          ),
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        writer.write(example.SerializeToString())
  return os.path.join(directory, "records-*.tfrecord")


def overrides(records: str) -> dict:
  """Returns what makes `swe/bert_pretraining` tiny, as nested dicts."""
  data = {
    "input_path": records,
    "global_batch_size": 8,
    "seq_length": LENGTH,
    "max_predictions_per_seq": PREDICTIONS,
  }
  return {
    "task": {
      "model": {
        "encoder": {
          "any": {
            "vocab_size": VOCAB,
            "hidden_size": 8,
            "num_layers": LAYERS,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "max_position_embeddings": LENGTH,
            "initializer_range": 0.3,
            "dropout_rate": 0.0,
            "attention_dropout_rate": 0.0,
          }
        }
      },
      "train_data": dict(data),
      "validation_data": dict(data),
      "sharing": {"untie_step": TAU},
    },
    "trainer": {
      "train_steps": STEPS,
      "steps_per_loop": 5,
      "summary_interval": 5,
      "checkpoint_interval": 1,
      "validation_interval": STEPS,
      "validation_steps": 2,
      "optimizer_config": {
        "learning_rate": {"polynomial": {"initial_learning_rate": 0.01}}
      },
    },
  }


def written(directory, **task) -> dict:
  """Returns `overrides` with records of its own, written to a directory."""
  os.makedirs(directory, exist_ok=True)
  made = overrides(write_records(directory))
  made["task"] |= task
  return made


def encoder(**fields) -> dict:
  """Returns the override of a task that changes its encoder."""
  return {"model": {"encoder": {"any": fields}}}


def every(steps: int, *, train_steps: int = STEPS) -> dict:
  """Returns a trainer's override: a loop, a checkpoint and a summary a time."""
  names = ("steps_per_loop", "summary_interval", "checkpoint_interval")
  return dict.fromkeys(names, steps) | {"train_steps": train_steps}


def config_of(*layers: dict, experiment: str = "swe/bert_pretraining"):
  """Returns the validated config of an experiment with overrides applied."""
  config = exp_factory.get_exp_config(experiment)
  for layer in layers:
    config.override(layer, is_strict=True)
  config.validate()
  config.lock()
  return config


def stock_of(config):
  """Returns the same experiment as stock Model Garden has it."""
  kept = {"model": config.task.model, "train_data": config.task.train_data}
  same = {"trainer": config.trainer, "runtime": config.runtime}
  return cfg.ExperimentConfig(task=masked_lm.MaskedLMConfig(**kept), **same)


def make_runner(config, model_dir, mode="train", strategy=None, **kwargs):
  """Returns Model Garden's runner with our trainer, restored if it can be."""
  strategy = strategy or tf.distribute.get_strategy()
  return runner.make_runner(
    config, str(model_dir), mode=mode, strategy=strategy, **kwargs
  )


def train(config, model_dir, *stops: int, strategy=None, **kwargs):
  """Trains to each stop in a new runner; returns the last trainer."""
  for stop in stops or (config.trainer.train_steps,):
    made = make_runner(config, model_dir, strategy=strategy, **kwargs)
    with made.strategy.scope():
      made.controller.train(stop)
  return made.trainer


def inner_optimizer(optimizer):
  """Returns the optimizer inside of all wrappers: that which has the slots."""
  for name in ("_optimizer", "_inner_optimizer"):
    if hasattr(optimizer, name):
      return inner_optimizer(getattr(optimizer, name))
  return optimizer


def final_state(trainer):
  """Returns all weights, slots and averages as a dict of arrays."""
  inner = inner_optimizer(trainer.optimizer)
  state = {}
  for i, v in enumerate(trainer.model.trainable_variables):
    state[f"{i}"] = v.numpy()
    # No loss reaches the pooler, so it has no slots.
    if slots.has_slots(inner, v) and "pooler" not in v.name:
      for name, slot in slots.slots_of(inner, v).items():
        state[f"{i} {name}"] = slot.numpy()
    if isinstance(trainer.optimizer, wrapper.ExponentialMovingAverage):
      average = trainer.optimizer.get_slot(v, "average")
      state[f"{i} average"] = average.numpy()
  return state


def assert_same_state(one, other) -> None:
  """Asserts that two trainers have the same weights and slots, bit by bit."""
  ours, theirs = map(final_state, (one, other))
  assert ours.keys() == theirs.keys()
  differ = [k for k in ours if ours[k].tobytes() != theirs[k].tobytes()]
  assert not differ, f"{len(differ)} of {len(ours)} tensors differ: {differ}"
  assert all(np.isfinite(value).all() for value in ours.values())


def assert_close_state(one: dict, other: dict, rtol: float, atol: float):
  """Asserts that two final states are equal up to rounding."""
  assert one.keys() == other.keys()
  for name, value in one.items():
    np.testing.assert_allclose(value, other[name], rtol, atol, err_msg=name)


def assert_same_checkpoints(one, other) -> None:
  """Asserts that two checkpoints, or two runs' last ones, are equal."""

  def values(path):
    reader = tf.train.load_checkpoint(str(path))
    names = reader.get_variable_to_shape_map()
    # What is saved in the background is counted in another way.
    aside = ("save_counter", "OBJECT_GRAPH", "identity/")
    kept = (name for name in names if not any(part in name for part in aside))
    return {name: reader.get_tensor(name) for name in kept}

  ours, theirs = values(one), values(other)
  assert ours.keys() == theirs.keys()
  assert len(ours) > 20, "weights and slots"
  differ = [k for k in ours if not np.array_equal(ours[k], theirs[k])]
  assert not differ, differ
