"""Converts GLUE files to TFRecords and `manifest.json`.

    swe prepare glue --task=SST-2 --input_dir=DIR --vocab=FILE --output_dir=DIR

Every file `train*`, `dev*`, `test*` and `diagnostic*` (`.tsv` or `.jsonl`) in
the input directory becomes a TFRecord file of the same name. All files are read
and checked before the first one is written.
"""

import dataclasses

from absl import logging

from swe_tf import files
from swe_tf.commands import options as options_lib
from swe_tf.data.glue import examples
from swe_tf.data.glue import tasks
from swe_tf.data.text import vocab as vocab_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  task: str = options_lib.flag("A GLUE task, such as SST-2 or MNLI.")
  input_dir: str = options_lib.flag("Directory with the task's files.")
  vocab: str = options_lib.flag(
    "Vocabulary file, of word pieces or characters."
  )
  output_dir: str = options_lib.flag(
    "Directory for the TFRecords, vocab.txt and manifest.json."
  )
  max_seq_length: int = options_lib.flag(
    "Length of every sequence.", 128, lower_bound=8
  )
  lower_case: bool = options_lib.flag(
    "Lower-case the text, for an uncased vocabulary.", True
  )


def run(options: Options) -> None:
  """Reads and checks everything, then writes."""
  task = tasks.find_task(options.task)
  files.check_output_dir(options.output_dir, "output_dir")
  vocab_lib.Vocabulary.load(options.vocab)
  glue_files = examples.read_glue_directory(options.input_dir, task)
  # TensorFlow takes seconds to import, so bad data is reported first.
  from swe_tf.data.glue import records
  from swe_tf.data.text import tokenizers

  logging.set_verbosity(logging.WARNING)  # Model Garden logs whole examples.
  records.write_glue_directory(
    glue_files,
    task,
    options.output_dir,
    tokenizer=tokenizers.CachedTokenizer(options.vocab, options.lower_case),
    max_seq_length=options.max_seq_length,
  )
