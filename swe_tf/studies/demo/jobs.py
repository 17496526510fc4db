"""The function of a demo's run: trains it, and looks into the model."""

from typing import Any

import numpy as np

from swe_tf import files
from swe_tf.modeling import registry as encoders
from swe_tf.sharing import optimizer
from swe_tf.studies import jobs
from swe_tf.studies import worker
from swe_tf.studies.demo import sentences

# What the model filled in at untying. It is written at once, since the run may
# be interrupted later.
_AT_UNTYING = "filled_at_untying.json"


def layer_cosines(model) -> list[list[float]]:
  """Returns the cosine between the kernels of every two blocks of a model.

  Only kernels count: the layer norms of all blocks stay near 1, and so alike.
  """
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


def train(job: worker.Job) -> dict[str, Any]:
  """Trains and evaluates as `studies.jobs.train`, and fills in sentences."""
  config = jobs.read_config(job)
  data = config.task.train_data
  at_untying = job.directory.path / _AT_UNTYING

  def fill(trainer):
    return sentences.fill(trainer.model, data.vocab_file_path, data.seq_length)

  def fill_if_untied(trainer, step):
    if trainer.phase == optimizer.UNSHARED and not at_untying.exists():
      content = {"step": step, "filled": fill(trainer)}
      files.write_json(at_untying, content)

  trainer, curves = jobs.fit(job, config, on_new_phase=fill_if_untied)
  at_end = {
    "filled": fill(trainer),
    "layer_cosines": layer_cosines(trainer.model),
  }
  if at_untying.exists():
    at_end["filled_at_untying"] = files.read_json(at_untying)["filled"]
  return job.finish(jobs.last_metrics(job, curves) | at_end)
