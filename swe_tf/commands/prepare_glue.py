"""The `swe prepare glue` command: GLUE files to TFRecords and `meta.json`.

    swe prepare glue --task=SST-2 --input_dir=DIR --vocab=FILE --output_dir=DIR

With `--tfds=glue/sst2` in the place of `--input_dir`, TFDS downloads the data.
Every file `train*`, `dev*`, `test*` and `diagnostic*` (`.tsv` or `.jsonl`) of
the input directory becomes a TFRecord file of the same name. All files are
read and checked before the first one is written.
"""

from collections.abc import Sequence
import pathlib
import tempfile

from absl import app
from absl import flags
from absl import logging

from swe_tf import files
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import tfds_files as glue_squad_tfds

_TASK = flags.DEFINE_string("task", None, "A GLUE task, such as SST-2 or MNLI.")
_INPUT_DIR = flags.DEFINE_string(
  "input_dir", None, "Directory with the files of the task."
)
_TFDS = flags.DEFINE_string(
  "tfds",
  None,
  "Instead of --input_dir, a name of TensorFlow Datasets, such as glue/sst2.",
)
_VOCAB = flags.DEFINE_string(
  "vocab", None, "Vocabulary file, of word pieces or of characters."
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", None, "Directory for the TFRecords, vocab.txt and meta.json."
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
  "max_seq_length", 128, "Length of every sequence.", lower_bound=8
)
_LOWER_CASE = flags.DEFINE_bool(
  "lower_case", True, "Whether the vocabulary is an uncased one."
)


@files.one_line_errors("swe prepare glue")
def main(argv: Sequence[str]) -> None:
  """Reads and checks everything, then writes."""
  files.refuse_arguments(argv[1:])
  files.require(
    task=_TASK.value,
    input_dir=_INPUT_DIR.value or _TFDS.value,
    vocab=_VOCAB.value,
    output_dir=_OUTPUT_DIR.value,
  )
  task = glue_tasks.find_task(_TASK.value)
  with tempfile.TemporaryDirectory() as scratch:
    if _TFDS.value:
      glue_squad_tfds.write_glue_files(_TFDS.value, task, pathlib.Path(scratch))
    glue_files = glue_examples.read_glue_directory(
      scratch if _TFDS.value else _INPUT_DIR.value, task
    )

  # TensorFlow takes seconds to import: faults in the data are told before.
  # pylint: disable=g-import-not-at-top
  from swe_tf.data.glue import records as glue_records
  from swe_tf.data.text import one_at_a_time as glue_squad_tokenizer
  # pylint: enable=g-import-not-at-top

  # Model Garden logs the first examples in full.
  logging.set_verbosity(logging.WARNING)
  glue_records.write_glue_directory(
    glue_files,
    task,
    _OUTPUT_DIR.value,
    tokenizer=glue_squad_tokenizer.load_tokenizer(
      _VOCAB.value, do_lower_case=_LOWER_CASE.value
    ),
    max_seq_length=_MAX_SEQ_LENGTH.value,
  )


if __name__ == "__main__":
  app.run(main)
