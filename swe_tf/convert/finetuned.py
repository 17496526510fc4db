"""A fine-tuned model, read from its run with all that serving it needs.

The task in the run's `params.yaml` says which kind it is; the vocabulary lies
beside the checkpoint or beside the prepared data.
"""

from typing import Any, NamedTuple

import tf_keras

from official.core import task_factory
from swe_tf import errors
from swe_tf import files
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.tasks import finetuning


class FineTuned(NamedTuple):
  config: Any  # Of the task.
  model: tf_keras.Model  # A `BertClassifier` or a `BertSpanLabeler`.
  vocab_file: files.PathLike
  lower_case: bool
  glue: glue_tasks.GlueTask | None  # None for SQuAD.
  threshold: float  # SQuAD v2.0: odds above it mean that there is no answer.


def read(
  checkpoint: files.PathLike,
  config_file: files.PathLike | None = None,
  vocab_file: files.PathLike | None = None,
) -> FineTuned | None:
  """Returns the fine-tuned model of a run; None if it is of another kind."""
  source = checkpoint_files.find_encoder(checkpoint, config_file)
  params, path = source.encoder.task, source.checkpoint
  # Fields that no other task has.
  if "n_best_size" in params:
    config: Any = finetuning.SquadConfig()
  elif "metric_type" in params:
    config = finetuning.GlueConfig()
  else:
    return None
  vocab_file = vocab_file or source.vocab_file
  if not vocab_file:
    raise errors.UsageError(
      f"there is no vocab.txt beside {path} or beside the data of its "
      "params.yaml; give --vocab."
    )
  vocabulary = vocab_lib.Vocabulary.load(vocab_file)
  data_dir = params.get("data_dir")
  data = (data_dir and manifest.load(data_dir)) or {}
  size = source.encoder.vocab_size or 0
  digest = data.get("vocab_sha256", vocabulary.sha256)
  if vocabulary.sha256 != digest or len(vocabulary) > size:
    raise errors.UsageError(
      f"{vocab_file} ({len(vocabulary):,} tokens) is not the vocabulary that "
      f"{path} was trained with ({size:,} tokens)."
    )
  config.override(dict(params), is_strict=False)
  config.validation_data = None  # It need not be there any more.
  folder = files.as_path(path).parent
  finished = files.read_object(folder / "result.json", missing_ok=True)
  glue, threshold, lower_case = None, 0.0, vocabulary.is_lower_case
  if isinstance(config, finetuning.SquadConfig):
    threshold = config.null_score_diff_threshold
    scores = finished.get("scores", {}).get("eval", {})
    if "best_f1_thresh" in scores:
      # That of predictions.json. It is the odds of a question itself, which
      # rounding can change; half way to the next it decides alike, and safely.
      threshold = scores["best_f1_thresh"]
      path_of_odds = folder / "null_odds.json"
      odds = files.read_object(path_of_odds, missing_ok=True).values()
      above = min(
        (each for each in odds if each > threshold), default=threshold
      )
      threshold = (threshold + above) / 2
  else:
    name = data.get("task") or finished.get("task")
    if not name:
      raise errors.UsageError(
        f"which GLUE task {path} is for cannot be found: there is neither a "
        f"{manifest.FILE_NAME} in task.data_dir ({data_dir}) nor a result.json "
        "beside it."
      )
    glue = glue_tasks.find_task(name)
  model = task_factory.get_task(config).build_model()
  checkpoint_files.read_into(path, "the model of its params.yaml", model=model)
  # Only SQuAD's params.yaml says it, too.
  for place in (params.get("train_data") or {}, data):
    lower_case = place.get("do_lower_case", lower_case)
  return FineTuned(config, model, vocab_file, lower_case, glue, threshold)
