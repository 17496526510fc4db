"""A fine-tuned model, read from its run with all that serving it needs.

The task in the run's `params.yaml` says which kind it is; the vocabulary lies
beside the checkpoint or beside the prepared data. Model Garden's own runs of
sentence prediction and question answering are read alike.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import tf_keras

from official.core import task_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import finetuning as configs
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.tasks import finetuning


@dataclasses.dataclass(frozen=True)
class FineTuned:
  """A model with its task.

  Attributes:
    config: The config of the task.
    model: Model Garden's `BertClassifier` or `BertSpanLabeler`.
    vocab_file: The vocabulary of the data that it was trained on.
    lower_case: Whether that data is lower-cased.
    glue: The GLUE task; None for SQuAD.
    threshold: SQuAD v2.0: above which no-answer odds there is no answer.
  """

  config: Any
  model: tf_keras.Model
  vocab_file: files.PathLike
  lower_case: bool
  glue: glue_tasks.GlueTask | None = None
  threshold: float = 0.0


def read(
  checkpoint: files.PathLike,
  config_file: files.PathLike | None = None,
  vocab_file: files.PathLike | None = None,
) -> FineTuned | None:
  """Returns the fine-tuned model of a run; None if it is of another kind."""
  source = configs.find_encoder(checkpoint, config_file)
  params, path = source.encoder.task, source.checkpoint
  # Fields that only these two tasks have.
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
  digest = data.get("vocab_sha256", vocabulary.sha256)
  if vocabulary.sha256 != digest or len(vocabulary) > source.encoder.vocab_size:
    raise errors.UsageError(
      f"{vocab_file} ({len(vocabulary):,} tokens) is not the vocabulary that "
      f"{path} was trained with ({source.encoder.vocab_size:,} tokens)."
    )
  config.override(dict(params), is_strict=False)
  config.validation_data = None  # Not read: a server has no such data.
  model = task_factory.get_task(config).build_model()
  checkpoint_files.read_into(path, "the model of its params.yaml", model=model)
  found = FineTuned(
    config=config,
    model=model,
    vocab_file=vocab_file,
    lower_case=data.get("do_lower_case", vocabulary.is_lower_case),
  )
  folder = files.as_path(path).parent
  result = _read_json(folder / "result.json")
  if isinstance(config, finetuning.SquadConfig):
    threshold = _threshold(result, _read_json(folder / "null_odds.json"))
    if threshold is None:
      threshold = config.null_score_diff_threshold
    lower_case = config.train_data.do_lower_case
    return dataclasses.replace(
      found, lower_case=lower_case, threshold=threshold
    )
  name = data.get("task") or result.get("task")
  if not name:
    raise errors.UsageError(
      f"which GLUE task {path} is for cannot be found: neither is there a "
      f"{manifest.FILE_NAME} in task.data_dir ({data_dir}) nor a result.json "
      "beside it."
    )
  return dataclasses.replace(found, glue=glue_tasks.find_task(name))


def _read_json(path: files.Path) -> dict[str, Any]:
  return files.read_json(path) if path.exists() else {}


def _threshold(
  result: Mapping[str, Any], null_odds: Mapping[str, float]
) -> float | None:
  """Returns the threshold that gives a finished run its `predictions.json`.

  The best one is the odds of a question itself, which another batch can round
  up. Half way to the next question's it decides the same, and safely.
  """
  scores = result.get("scores", {}).get("eval", {})
  best = scores.get("best_f1_thresh")
  if best is None:
    return None
  above = (odds for odds in null_odds.values() if odds > best)
  return (best + min(above, default=best)) / 2
