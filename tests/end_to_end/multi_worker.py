"""One worker of a cluster: trains the tiny BERT, then leaves what it has.

    TF_CONFIG=... python -m tests.end_to_end.multi_worker MODEL_DIR OUTPUT RULE

Without TF_CONFIG it is the one process to compare with. The global batch of a
step is the same however many workers there are. RULE is `tau`, `cosine` (the
adaptive rule), `net2net` or `stacking`, which share nothing and grow.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

from official.core import task_factory
from swe_tf.sharing import schedule
from swe_tf.tasks import masked_lm
from tests import tiny

_BATCH, _EVERY = 8, 3
# The number of layers, and the fractions of the steps after which they grow.
GROWTH = {"net2net": (2, [0.5]), "stacking": (4, [0.25, 0.5])}


class _Task(masked_lm.SharedMaskedLMTask):
  """Reads batches that depend on the step alone."""

  def check_data(self):
    return ()

  def build_inputs(self, params, input_context=None, start_step=0):
    context = input_context or tf.distribute.InputContext()
    share = _BATCH // context.num_input_pipelines
    first = share * context.input_pipeline_id

    def batch(step):
      ids = tf.random.stateless_uniform(
        [_BATCH, tiny.LENGTH], [7, step], 5, tiny.VOCAB, tf.int32
      )
      features = dict(
        input_word_ids=ids,
        input_mask=tf.ones_like(ids),
        input_type_ids=tf.zeros_like(ids),
        masked_lm_positions=tf.tile(
          [tf.range(1, 1 + tiny.PREDICTIONS)], [_BATCH, 1]
        ),
        masked_lm_ids=ids[:, : tiny.PREDICTIONS],
        masked_lm_weights=tf.ones([_BATCH, tiny.PREDICTIONS]),
      )
      return {
        name: value[first : first + share] for name, value in features.items()
      }

    return tf.data.Dataset.range(start_step, tf.int64.max).map(batch)


def _growth(rule_name):
  """Returns the overrides for a model that grows."""
  if rule_name not in GROWTH:
    return {}
  num_layers, fractions = GROWTH[rule_name]
  return {
    "task": {
      "model": {"encoder": {"any": {"num_layers": num_layers}}},
      "sharing": {"mode": "none", "untie_step": None},
      "growth": {"method": rule_name, "fractions": fractions},
    }
  }


def main(model_dir, output, rule_name):
  cluster = json.loads(os.environ.get("TF_CONFIG", "{}"))
  strategy = (
    tf.distribute.MultiWorkerMirroredStrategy()
    if cluster
    else tf.distribute.get_strategy()
  )
  config = tiny.config_of(
    tiny.overrides("unused"),
    {
      "task": {"scale_loss": True},
      "trainer": {
        "steps_per_loop": _EVERY,
        "summary_interval": _EVERY,
        "checkpoint_interval": _EVERY,
        # Model Garden clips on each replica: with more of them that
        # is another training. A small epsilon blows up rounding.
        "optimizer_config": {
          "optimizer": {"adamw": {"gradient_clip_norm": 0.0, "epsilon": 1e-3}}
        },
      },
    },
    _growth(rule_name),
  )
  rule = {
    "tau": lambda: None,
    "cosine": lambda: schedule.UntieByCorrelation(
      interval=_EVERY, rho=0.999, patience=2
    ),
    "net2net": lambda: None,
    "stacking": lambda: None,
  }[rule_name]()
  task_factory.get_task = lambda config, **kwargs: _Task(config, **kwargs)
  runner = tiny.make_runner(
    config, model_dir, strategy=strategy, untie_rule=rule
  )
  runner.run()
  state = tiny.final_state(runner.trainer)
  phases = runner.trainer._phases
  np.savez(
    output,
    **state,
    changed=phases.stage if rule_name in GROWTH else phases.optimizer.untied_at,
    seen=[
      (decision["step"], *decision["cosines"])
      for decision in getattr(rule, "decisions", ())
    ],
  )


if __name__ == "__main__":
  main(*sys.argv[1:])
