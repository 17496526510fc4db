"""SQuAD questions to TFRecords for Model Garden's question answering task.

Uses Model Garden's reader and converter, with a tokenizer that is several times
faster. `predictions` turns logits back into text.
"""

from collections.abc import Callable
import dataclasses
import time
from typing import Any

from official.nlp.data import squad_lib
from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import manifest
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import cached_tokenizer

Windows = squad_questions.Windows
BERT_WINDOWS = Windows()


@dataclasses.dataclass
class EvalFeatures:
  """What is needed to turn logits back into answers.

  Attributes:
    examples: Model Garden's `SquadExample`s, one per question.
    features: Model Garden's `InputFeatures`, one per window.
  """

  examples: list[squad_lib.SquadExample]
  features: list[squad_lib.InputFeatures]


def write_train_records(
  path: files.PathLike,
  output: files.PathLike,
  *,
  version: str,
  tokenizer: cached_tokenizer.CachedTokenizer,
  windows: Windows = BERT_WINDOWS,
) -> tuple[int, int]:
  """Writes the windows of a training file that `check_convertible` passed.

  Returns:
    The number of questions, and of windows written. Model Garden leaves out
    questions whose answer it cannot find after its own splitting at white
    space.
  """
  with files.complete_or_absent(output) as scratch:
    writer = squad_lib.FeatureWriter(scratch, is_training=True)
    # Written one by one: all windows at a time would fill the memory.
    examples, count = _convert(
      path, version, tokenizer, windows, True, writer.process_feature
    )
    writer.close()
  return len(examples), count


def build_eval_features(
  path: files.PathLike,
  *,
  version: str,
  tokenizer: cached_tokenizer.CachedTokenizer,
  windows: Windows = BERT_WINDOWS,
  output: files.PathLike | None = None,
) -> EvalFeatures:
  """Returns the windows of an evaluation file; `output` gets their records.

  A SQuAD dev file takes about 7 seconds, so the features are not stored but
  rebuilt from the JSON file when logits are turned into answers. The ids of the
  windows are the same each time.
  """
  features: list[squad_lib.InputFeatures] = []
  add = lambda feature, is_padding: features.append(feature)
  examples, _ = _convert(path, version, tokenizer, windows, False, add)
  if output is not None:
    with files.complete_or_absent(output) as scratch:
      writer = squad_lib.FeatureWriter(scratch, is_training=False)
      for feature in features:
        writer.process_feature(feature)
      writer.close()
  return EvalFeatures(examples, features)


def _convert(path, version, tokenizer, windows, is_training, output_fn):
  """Returns the examples of a file, and how many windows were made."""
  examples = squad_lib.read_squad_examples(
    str(path), is_training, version_2_with_negative=version == "2.0"
  )
  count = squad_lib.convert_examples_to_features(
    examples,
    tokenizer,
    **dataclasses.asdict(windows),
    is_training=is_training,
    output_fn=output_fn,
    # With one window per batch, Model Garden adds none to fill the last batch.
    batch_size=None if is_training else 1,
  )
  return examples, count


def write_squad_directory(
  squad: squad_questions.SquadFile,
  split: str,
  output_dir: files.PathLike,
  *,
  tokenizer: cached_tokenizer.CachedTokenizer,
  windows: Windows = BERT_WINDOWS,
  report: Callable[[str], Any] = print,
) -> dict[str, Any]:
  """Adds a split to a directory of records with `vocab.txt` and a manifest.

  Args:
    squad: The questions of the split, which `check_convertible` has passed.
    split: `train` or `eval`. The file of an evaluation split is copied to
      `eval.json`, where scoring and Model Garden's task find it.
    output_dir: The directory. It may hold the other split, made with the same
      version, vocabulary and lengths.
    tokenizer: Makes the tokens.
    windows: The lengths.
    report: Called with a line when the split is finished.

  Returns:
    The manifest.
  """
  output_dir = files.as_path(output_dir)
  output = output_dir / f"{split}.tf_record"
  json_copy = output_dir / "eval.json"
  files.refuse_existing([output] + [json_copy] * (split == "eval"))
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

  start = time.monotonic()
  if split == "train":
    questions, size = write_train_records(
      squad.path,
      output,
      version=squad.version,
      tokenizer=tokenizer,
      windows=windows,
    )
  else:
    built = build_eval_features(
      squad.path,
      version=squad.version,
      tokenizer=tokenizer,
      windows=windows,
      output=output,
    )
    questions, size = len(built.examples), len(built.features)
    files.write_bytes(json_copy, files.read_bytes(squad.path))
  vocabulary = files.read_bytes(tokenizer.vocab_file)
  files.write_bytes(output_dir / "vocab.txt", vocabulary)
  dropped = len(squad.questions) - questions
  report(
    f"{output}: {questions:,} questions in {size:,} sequences, "
    f"{dropped:,} dropped ({time.monotonic() - start:.1f} s)"
  )
  content[f"{split}_data_size"] = size  # As Model Garden calls it.
  content.setdefault("splits", {})[split] = {
    "file": output.name,
    "size": size,
    "questions": questions,
    "dropped_questions": dropped,
  }
  files.write_json(path, content)
  return content
