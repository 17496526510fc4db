"""GLUE examples to TFRecords for Model Garden's sentence prediction task.

Uses Model Garden's converter, so the records are what it would write. Its GLUE
processors are not used: they read only from TFDS, put the hypothesis before the
premise, and name MNLI's class ids in a different order than TFDS.
"""

from collections.abc import Sequence
import time
from typing import Any

from official.nlp.data import classifier_data_lib
from swe_tf import files
from swe_tf import sameness
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.text import coverage
from swe_tf.data.text import tokenizers

# TFDS's label for test examples. A loss or a score over it fails or is absurd,
# whereas a class id would go unnoticed.
_UNLABELLED = -1


def write_glue_directory(
  glue_files: Sequence[glue_examples.GlueFile],
  task: glue_tasks.GlueTask,
  output_dir: files.PathLike,
  *,
  tokenizer: tokenizers.CachedTokenizer,
  max_seq_length: int = 128,
) -> dict[str, Any]:
  """Writes a TFRecord file for each GLUE file, `vocab.txt` and the manifest.

  `train.tsv` becomes `train.tf_record`; nothing may exist yet. `example_id` is
  the row in the GLUE file. If a pair is too long, the longer text is cut first.
  """
  output_dir = files.as_path(output_dir)
  vocab_path = output_dir / "vocab.txt"
  outputs = [output_dir / f"{file.path.stem}.tf_record" for file in glue_files]
  files.refuse_existing([*outputs, vocab_path, output_dir / manifest.FILE_NAME])

  rows = [row for file in glue_files for row in file.examples]
  texts = [text for row in rows for text in row.texts]
  folder = glue_files[0].path.parent
  for warning in coverage.check_texts(tokenizer, texts, folder):
    print(f"WARNING: {warning}")
  label_type = float if task.is_regression else int
  splits: dict[str, Any] = {}
  for file, output in zip(glue_files, outputs):
    start = time.monotonic()
    examples = [
      classifier_data_lib.InputExample(
        guid=None,
        text_a=row.texts[0],
        text_b=row.texts[1] if len(row.texts) > 1 else None,
        label=label_type(_UNLABELLED if row.label is None else row.label),
        example_id=row.index,
      )
      for row in file.examples
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
    splits[file.path.stem] = {
      "file": output.name,
      "size": len(examples),
      "dropped_rows": file.dropped,
      "labelled": file.labelled,
      "fingerprint": sameness.fingerprint([output]),
    }
    print(
      f"{output}: {len(examples):,} examples, {file.dropped:,} rows dropped"
      f"{task.why_dropped * bool(file.dropped)} "
      f"({time.monotonic() - start:.1f} s)"
    )
  # Sizes by Model Garden's names; for MNLI, of the matched splits.
  sizes: dict[str, int] = {}
  for key, role in (("train", "train"), ("eval", "dev"), ("test", "test")):
    for name, split in splits.items():
      # AX has only a diagnostic set, which is a test set.
      if name.replace("diagnostic", "test").startswith(role):
        sizes.setdefault(f"{key}_data_size", split["size"])
  # Fine-tuning compares it with the encoder's.
  files.write_bytes(vocab_path, files.read_bytes(tokenizer.vocab_file))
  content = manifest.make(
    manifest.GLUE,
    task=task.name,
    task_type="bert_" + ("classification", "regression")[task.is_regression],
    num_labels=len(task.labels) or 1,
    labels=list(task.labels),
    label_type=label_type.__name__,
    metric_type=task.model_garden_metric,
    max_seq_length=max_seq_length,
    **tokenizer.facts(),
    **sizes,
    splits=splits,
  )
  files.write_json(output_dir / manifest.FILE_NAME, content)
  return content
