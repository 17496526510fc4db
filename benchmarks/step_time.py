"""Step time of the shared and the unshared phase against stock Model Garden.

    python -m benchmarks.step_time            # what `make bench` runs

Compiled steps of one 24-layer BERT live side by side: Model Garden's own (its
AdamW, nothing of ours), shared, unshared, and shared with the cosine of the
gradients measured in every step (training measures it once in
`trainer.summary_interval` steps). They run in turns, so that whatever else the
machine does hits all of them; a figure is the median over the rounds of the
ratio within a round.
"""

import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# pylint: disable=g-import-not-at-top
from absl import app
from absl import flags
import tensorflow as tf

from official.core import train_utils
from official.nlp.tasks import masked_lm as stock_masked_lm
from swe_tf.sharing import optimizer as optimizer_lib
from swe_tf.tasks import masked_lm
from tests import tiny

_ROUNDS = flags.DEFINE_integer("rounds", 30, "How often to go round.")
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file for the figures.")

# Tokens a step are what the model computes on, weights are what the optimizer
# works on: few tokens and a wide model make the optimizer dominate.
CONFIGURATIONS = {
    "compute dominates": dict(width=64, batch=16, length=128),
    "optimizer dominates": dict(width=256, batch=1, length=16),
}
_STOCK, _SHARED, _UNSHARED = "stock", "shared", "unshared"
_MEASURED = "shared, cosine in every step"
_KINDS = (_STOCK, _SHARED, _UNSHARED, _MEASURED)


def _config(width, batch, length):
  data = {
      "input_path": "dummy",
      "global_batch_size": batch,
      "seq_length": length,
      "max_predictions_per_seq": max(1, length // 8),
  }
  return tiny.config_of({
      "task": {
          "model": {
              "encoder": {
                  "any": {
                      "vocab_size": 1000,
                      "hidden_size": width,
                      "num_layers": 24,
                      "num_attention_heads": 4,
                      "intermediate_size": 4 * width,
                      "max_position_embeddings": length,
                  }
              }
          },
          "train_data": data,
          "validation_data": data,
      },
      "trainer": {"train_steps": 10**6, "steps_per_loop": 1000},
  })


def _batch(batch, length):
  predictions = max(1, length // 8)
  ids = tf.random.uniform([batch, length], 0, 1000, tf.int32)
  return dict(
      input_word_ids=ids,
      input_mask=tf.ones_like(ids),
      input_type_ids=tf.zeros_like(ids),
      masked_lm_positions=tf.tile([tf.range(predictions)], [batch, 1]),
      masked_lm_ids=ids[:, :predictions],
      masked_lm_weights=tf.ones([batch, predictions]),
  )


def make_step(kind: str, config, inputs):
  """Returns a compiled training step of its own model, run once already."""
  task = masked_lm.SharedMaskedLMTask(config.task)
  model = task.build_model()
  optimizer = train_utils.create_optimizer(task, config)
  step_of = task.train_step
  if kind == _STOCK:
    step_of = stock_masked_lm.MaskedLMTask(config.task).train_step
  else:
    plan = task.build_sharing_plan(model)
    plan.tie_weights()
    optimizer = optimizer_lib.SharedWeightsOptimizer(
        optimizer,
        plan,
        cosine_interval=(
            1 if kind == _MEASURED else config.trainer.summary_interval
        ),
    )
    if kind == _UNSHARED:
      optimizer.untie()
  metrics = task.build_metrics(training=True)

  @tf.function
  def step():
    return step_of(inputs, model=model, optimizer=optimizer, metrics=metrics)

  float(step()["loss"])
  return step


def measure(name: str, rounds: int):
  """Returns the median ratios of one configuration."""
  shape = CONFIGURATIONS[name]
  config = _config(**shape)
  inputs = _batch(shape["batch"], shape["length"])
  steps = {kind: make_step(kind, config, inputs) for kind in _KINDS}
  times = {kind: [] for kind in steps}
  for i in range(rounds + 2):
    # Every kind starts a round equally often.
    first = i % len(_KINDS)
    order = _KINDS[first:] + _KINDS[:first]
    for kind in order:
      start = time.perf_counter()
      float(steps[kind]()["loss"])
      if i >= 2:
        times[kind].append(time.perf_counter() - start)

  def ratio(kind, to=_STOCK):
    return statistics.median(t / s for t, s in zip(times[kind], times[to]))

  return {
      "configuration": name,
      **shape,
      "stock_seconds": statistics.median(times[_STOCK]),
      "shared/stock": ratio(_SHARED),
      "unshared/stock": ratio(_UNSHARED),
      "a cosine/shared": ratio(_MEASURED, _SHARED) - 1.0,
  }


def main(_):
  results = []
  for name in CONFIGURATIONS:
    results.append(measure(name, _ROUNDS.value))
    r = results[-1]
    print(
        f"{name:<20} width {r['width']:>4}, {r['batch']:>2} x {r['length']:>3} "
        f"tokens: stock {1000 * r['stock_seconds']:7.1f} ms, "
        f"shared/stock {r['shared/stock']:.3f}, "
        f"unshared/stock {r['unshared/stock']:.3f}, "
        f"a cosine costs {r['a cosine/shared']:.1%} of a shared step",
        flush=True,
    )
  if _OUTPUT.value:
    with open(_OUTPUT.value, "w") as file:
      json.dump(results, file, indent=2)


if __name__ == "__main__":
  app.run(main)
