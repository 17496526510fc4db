"""GLUE examples to TFRecords for Model Garden's sentence prediction task.

Uses Model Garden's converter, so the records are what it would write. Its GLUE
processors are not used: they read only from TFDS, put the hypothesis before the
premise, and name MNLI's class ids in a different order than TFDS.
"""

from collections.abc import Callable, Sequence
import time
from typing import Any

from official.nlp.data import classifier_data_lib
from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.text import cached_tokenizer

# TFDS's label for test examples. A loss or a score over it fails or is absurd,
# whereas a class id would go unnoticed.
UNLABELLED = -1


def write_glue_directory(
  glue_files: Sequence[glue_examples.GlueFile],
  task: glue_tasks.GlueTask,
  output_dir: files.PathLike,
  *,
  tokenizer: cached_tokenizer.CachedTokenizer,
  max_seq_length: int = 128,
  report: Callable[[str], Any] = print,
) -> dict[str, Any]:
  """Writes a TFRecord file for each GLUE file, `vocab.txt` and the manifest.

  Args:
    glue_files: What to write. `train.tsv` becomes `train.tf_record`.
    task: The task of the files.
    output_dir: The directory, in which none of the outputs may exist yet.
    tokenizer: Makes the tokens.
    max_seq_length: The length of every sequence.
    report: Called with a line for every finished file.

  Returns:
    The manifest.
  """
  output_dir = files.as_path(output_dir)
  vocab_path = output_dir / "vocab.txt"
  outputs = [output_dir / f"{file.path.stem}.tf_record" for file in glue_files]
  files.refuse_existing([*outputs, vocab_path, output_dir / manifest.FILE_NAME])

  splits = {}
  for glue_file, output in zip(glue_files, outputs):
    start = time.monotonic()
    write_glue_records(
      glue_file,
      task,
      output,
      tokenizer=tokenizer,
      max_seq_length=max_seq_length,
    )
    splits[glue_file.path.stem] = {
      "file": output.name,
      "size": len(glue_file.examples),
      "dropped_rows": glue_file.dropped,
      "labelled": glue_file.labelled,
    }
    report(
      f"{output}: {len(glue_file.examples):,} examples, "
      f"{glue_file.dropped:,} rows dropped "
      f"({time.monotonic() - start:.1f} s)"
    )
  # Fine-tuning compares it with the encoder's.
  files.write_bytes(vocab_path, files.read_bytes(tokenizer.vocab_file))
  content = manifest.make(
    manifest.GLUE,
    task=task.name,
    task_type=(
      "bert_regression" if task.is_regression else "bert_classification"
    ),
    num_labels=len(task.labels) or 1,
    labels=list(task.labels),
    label_type="float" if task.is_regression else "int",
    metric_type=task.model_garden_metric,
    max_seq_length=max_seq_length,
    **tokenizer.facts(),
    **_sizes(splits),
    splits=splits,
  )
  files.write_json(output_dir / manifest.FILE_NAME, content)
  return content


def _sizes(splits) -> dict[str, int]:
  """Returns sizes by Model Garden's names; for MNLI, of the matched splits."""
  names = {"train": "train", "eval": "dev", "test": ("test", "diagnostic")}
  sizes: dict[str, int] = {}
  for key, roles in names.items():
    for name, split in splits.items():
      if name.startswith(roles):
        sizes.setdefault(f"{key}_data_size", split["size"])
  return sizes


def write_glue_records(
  glue_file: glue_examples.GlueFile,
  task: glue_tasks.GlueTask,
  output: files.PathLike,
  *,
  tokenizer: cached_tokenizer.CachedTokenizer,
  max_seq_length: int = 128,
) -> None:
  """Writes one TFRecord file; `example_id` is the row in the GLUE file.

  If a pair is too long, the longer text is cut first.
  """
  label_type = float if task.is_regression else int
  examples = [
    classifier_data_lib.InputExample(
      guid=None,
      text_a=example.texts[0],
      text_b=example.texts[1] if len(example.texts) > 1 else None,
      label=label_type(UNLABELLED if example.label is None else example.label),
      example_id=example.index,
    )
    for example in glue_file.examples
  ]
  with files.complete_or_absent(output) as scratch:
    classifier_data_lib.file_based_convert_examples_to_features(
      examples,
      label_list=None,  # The labels are already ids.
      max_seq_length=max_seq_length,
      tokenizer=tokenizer,
      output_file=scratch,
      label_type=label_type,
    )
