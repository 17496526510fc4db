"""Converts GLUE files to TFRecords and `manifest.json`.

    swe prepare glue --task=SST-2 --input_dir=DIR --vocab=FILE --output_dir=DIR

Every file `train*`, `dev*`, `test*` and `diagnostic*` (`.tsv` or `.jsonl`) in
the input directory becomes a TFRecord file of the same name. All files are read
and checked before the first one is written.
"""

import dataclasses

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.data.glue import examples
from swe_tf.data.glue import tasks
from swe_tf.data.text import vocab as vocab_lib


@dataclasses.dataclass(frozen=True)
class Options(opt.Records):
  task: str = opt.flag("A GLUE task, such as SST-2 or MNLI.")
  input_dir: str = opt.flag("Directory with the task's files.")
  max_seq_length: int = opt.flag(
    "Length of every sequence.", 128, least=8, most=2**16
  )


def run(options: Options) -> None:
  task = tasks.find_task(options.task)
  files.check_output_dir(options.output_dir, "output_dir")
  vocab_lib.Vocabulary.load(options.vocab)
  glue_files = examples.read_glue_directory(options.input_dir, task)
  # TensorFlow takes seconds to import, so bad data is reported first.
  with messages.during("writing the records"):
    from swe_tf.data.glue import records
    from swe_tf.data.text import tokenizers

    records.write_glue_directory(
      glue_files,
      task,
      options.output_dir,
      tokenizer=tokenizers.CachedTokenizer(options.vocab, options.lower_case),
      max_seq_length=options.max_seq_length,
    )
