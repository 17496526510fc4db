"""SQuAD questions to TFRecords, and a model's logits back to answers.

Uses Model Garden's converter and search for the best span. One thing differs:
an answer is kept for every question, even where "no answer" scores higher, so
that the no-answer threshold can be chosen afterwards (`best_f1` of the official
script), not only lowered.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import time
from typing import Any

from official.nlp.data import squad_lib
from swe_tf import errors
from swe_tf import files
from swe_tf import sameness
from swe_tf.data.prepare import manifest
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import coverage
from swe_tf.data.text import tokenizers

Windows = squad_questions.Windows
# What turns logits back into answers: the questions, and their windows.
EvalFeatures = tuple[
  list[squad_lib.SquadExample], list[squad_lib.InputFeatures]
]
_WHY_DROPPED = (
  ", as Model Garden does not find their answers among words split at spaces"
)


def build_eval_features(
  path: files.PathLike,
  *,
  version: str,
  tokenizer: tokenizers.CachedTokenizer,
  windows: Windows,
) -> EvalFeatures:
  """Returns questions and windows of a file, with the same ids each time."""
  # Not stored beside the records: a dev file takes about 7 seconds.
  features: list[squad_lib.InputFeatures] = []
  examples, _ = convert(
    path, version, tokenizer, windows, False, features.append
  )
  return examples, features


def convert(path, version, tokenizer, windows, is_training, output_fn):
  """Gives `output_fn` every window of a file; returns examples and a count."""
  examples = squad_lib.read_squad_examples(
    str(path), is_training, version_2_with_negative=version == "2.0"
  )
  count = squad_lib.convert_examples_to_features(
    examples,
    tokenizer,
    **dataclasses.asdict(windows),
    is_training=is_training,
    output_fn=lambda feature, is_padding=False: output_fn(feature),
    # With one window per batch, Model Garden adds none to fill the last batch.
    batch_size=None if is_training else 1,
  )
  return examples, count


def write_squad_directory(
  squad: squad_questions.SquadFile,
  split: str,
  output_dir: files.PathLike,
  *,
  tokenizer: tokenizers.CachedTokenizer,
  windows: Windows,
) -> dict[str, Any]:
  """Adds a split to a directory of records with `vocab.txt` and a manifest.

  `check_convertible` has passed its questions. The directory may hold the other
  split, made with the same version, vocabulary and lengths. The file of `eval`
  is copied to `eval.json`, where scoring and Model Garden's task find it.
  """
  output_dir = files.as_path(output_dir)
  output = output_dir / f"{split}.tf_record"
  json_copy = output_dir / "eval.json"
  is_training = split == "train"
  files.refuse_existing([output] if is_training else [output, json_copy])
  content = manifest.make(
    manifest.SQUAD,
    task=f"squad_v{squad.version}",
    task_type="bert_squad",
    version_2_with_negative=squad.version == "2.0",
    **dataclasses.asdict(windows),
    **tokenizer.facts(),
  )
  path = output_dir / manifest.FILE_NAME
  earlier = manifest.load(output_dir)
  if earlier:
    for key, value in content.items():
      if earlier.get(key) != value:
        raise errors.UsageError(
          f"{path} has {key} {earlier.get(key)!r}, but now it is {value!r}; "
          "prepare both splits with the same settings, or choose another "
          "output."
        )
    content = earlier

  texts = {t for q in squad.questions for t in (q.text, q.context) if t}
  for warning in coverage.check_texts(tokenizer, sorted(texts), squad.path):
    print(f"WARNING: {warning}")
  start = time.monotonic()
  with files.complete_or_absent(output) as scratch:
    writer = squad_lib.FeatureWriter(scratch, is_training)
    # Written one by one: all windows at a time would fill the memory.
    examples, size = convert(
      squad.path,
      squad.version,
      tokenizer,
      windows,
      is_training,
      writer.process_feature,
    )
    writer.close()
  written = [output]
  if not is_training:
    written.append(json_copy)
    files.write_bytes(json_copy, files.read_bytes(squad.path))
  vocabulary = files.read_bytes(tokenizer.vocab_file)
  files.write_bytes(output_dir / "vocab.txt", vocabulary)
  dropped = len(squad.questions) - len(examples)
  print(
    f"{output}: {len(examples):,} questions in {size:,} sequences, "
    f"{dropped:,} dropped{_WHY_DROPPED * bool(dropped)} "
    f"({time.monotonic() - start:.1f} s)"
  )
  content[f"{split}_data_size"] = size  # As Model Garden calls it.
  content.setdefault("splits", {})[split] = {
    "file": output.name,
    "size": size,
    "questions": len(examples),
    "dropped_questions": dropped,
    "fingerprint": sameness.fingerprint(written),
  }
  files.write_json(path, content)
  return content


@dataclasses.dataclass(frozen=True)
class Answers:
  """A model's answers by question, before deciding which have none."""

  texts: Mapping[str, str]
  # The score of "no answer" minus the score of the answer; empty for v1.1.
  null_odds: Mapping[str, float]

  def decide(self, threshold: float = 0.0) -> dict[str, str]:
    """Returns the predictions: empty where `null_odds` exceed the threshold."""
    return {
      name: "" if self.null_odds.get(name, -math.inf) > threshold else text
      for name, text in self.texts.items()
    }


def answers_from_logits(
  built: EvalFeatures,
  results: Sequence[Any],
  *,
  version: str,
  do_lower_case: bool = True,
  n_best_size: int = 20,
  max_answer_length: int = 30,
) -> Answers:
  """Returns the best answer to each question.

  `results` has for each window an object with `unique_id`, `start_logits` and
  `end_logits`, such as Model Garden's `RawAggregatedResult`.
  """
  examples, features = built
  windows = {feature.unique_id for feature in features}
  missing = windows - {result.unique_id for result in results}
  if missing:  # Model Garden would make up an answer.
    raise ValueError(
      f"There are no logits for {len(missing)} of {len(windows)} windows; set "
      "drop_remainder to False so that the last batch is not dropped."
    )
  texts, _, null_odds = squad_lib.postprocess_output(
    examples,
    features,
    results,
    n_best_size=n_best_size,
    max_answer_length=max_answer_length,
    do_lower_case=do_lower_case,
    version_2_with_negative=version == "2.0",
    null_score_diff_threshold=math.inf,  # Keeps every answer; see above.
  )
  odds = {name: float(value) for name, value in null_odds.items()}
  return Answers(dict(texts), odds)
