"""The demo's job for the worker: one of the two runs."""

import collections
import math
import os
from typing import Any

from swe_tf import files
from swe_tf.analysis import scalars
from swe_tf.data.text import docstrings
from swe_tf.modeling import registry as encoders
from swe_tf.studies import worker
from swe_tf.studies.demo import experiment
from swe_tf.studies.demo import sentences

# What the model filled in at untying. It is written at once, since the run may
# be interrupted later.
_AT_UNTYING = "filled_at_untying.json"


def character_entropy(path: str) -> float:
  """Returns the entropy in nats of the lower-cased characters of a file."""
  counts = collections.Counter(files.read_text(path).lower().replace("\n", " "))
  total = sum(counts.values())
  return -sum(n / total * math.log(n / total) for n in counts.values())


def layer_cosines(model) -> list[list[float]]:
  """Returns the cosine between the kernels of every two blocks of a model.

  Only kernels count: the layer norms of all blocks stay near 1, and so alike.
  """
  import numpy as np

  layers = np.array(
    [
      np.concatenate(
        [np.ravel(w) for w in block.trainable_weights if len(w.shape) > 1]
      )
      for block in encoders.blocks_of(model)
    ]
  )
  layers /= np.linalg.norm(layers, axis=1, keepdims=True)
  return (layers @ layers.T).round(4).tolist()


def train(
  job: worker.Job,
  corpus: list[str],
  params_override: str | None,
  is_baseline: bool = False,
) -> dict[str, Any]:
  """Trains and evaluates one of the runs.

  Args:
    job: The job.
    corpus: The fields of `docstrings.CorpusPaths`.
    params_override: As for `swe train`; may be empty.
    is_baseline: Whether this is the run that never shares.
  """
  from swe_tf.configs import cost
  from swe_tf.sharing import optimizer
  from swe_tf.studies import jobs

  paths = docstrings.CorpusPaths(*corpus)
  config = experiment.make_config(paths, params_override, is_baseline)
  data = config.task.train_data
  at_untying = files.as_path(job.path) / _AT_UNTYING

  def fill(trainer):
    return sentences.fill(trainer.model, data.vocab_file_path, data.seq_length)

  def fill_if_untied(trainer, step):
    if trainer.phase == optimizer.UNSHARED and not at_untying.exists():
      content = {"step": step, "filled": fill(trainer)}
      files.write_json(at_untying, content)

  trainer, curves = jobs.pretrain(job, config, on_new_phase=fill_if_untied)
  result = {
    "train_steps": config.trainer.train_steps,
    "seq_length": data.seq_length,
    "tokens_per_step": data.global_batch_size * data.seq_length,
    "flops": cost.training_flops(config),
    "validation_loss": curves["validation_loss"][-1][1],
    "masked_lm_accuracy": curves["masked_lm_accuracy"][-1][1],
    "entropy_of_single_characters": character_entropy(paths.validation),
    "filled": fill(trainer),
    "layer_cosines": layer_cosines(trainer.model),
  }
  if at_untying.exists():
    content = files.read_json(at_untying)
    result["filled_at_untying"] = content["filled"]
  tau = scalars.read_scalars(os.path.join(job.path, "train")).get(
    "sharing/untie_step"
  )
  if tau:  # A run that never shares has none.
    result["untie_step"] = int(tau[-1][1])
  return job.finish(result)
