"""Converts GLUE files to TFRecords and `manifest.json`.

    swe prepare glue --task=SST-2 --input_dir=DIR --vocab=FILE --output_dir=DIR

With `--tfds=glue/sst2` instead of `--input_dir`, TFDS downloads the data. Every
file `train*`, `dev*`, `test*` and `diagnostic*` (`.tsv` or `.jsonl`) in the
input directory becomes a TFRecord file of the same name. All files are read and
checked before the first one is written.
"""

import dataclasses
import pathlib
import tempfile

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import options as opt
from swe_tf.data import tfds_files
from swe_tf.data.glue import examples
from swe_tf.data.glue import tasks
from swe_tf.data.text import vocab as vocab_lib


@dataclasses.dataclass(frozen=True)
class Options(opt.Records):
  task: str = opt.flag("A GLUE task, such as SST-2 or MNLI.")
  input_dir: str = opt.flag("Directory with the task's files.", "")
  tfds: str | None = opt.flag(
    "Instead of --input_dir: a TensorFlow dataset, such as glue/sst2.", None
  )
  max_seq_length: int = opt.flag("Length of every sequence.", 128, least=8)

  def __post_init__(self):
    if not self.input_dir and not self.tfds:
      raise errors.UsageError(
        "--input_dir is missing; give it or --tfds, see --help."
      )


def run(options: Options) -> None:
  task = tasks.find_task(options.task)
  files.check_output_dir(options.output_dir, "output_dir")
  vocab_lib.Vocabulary.load(options.vocab)
  with tempfile.TemporaryDirectory() as scratch:
    if options.tfds:
      tfds_files.write_glue_files(options.tfds, task, pathlib.Path(scratch))
    glue_files = examples.read_glue_directory(
      scratch if options.tfds else options.input_dir, task
    )
  # TensorFlow takes seconds to import, so bad data is reported first.
  from swe_tf.data.glue import records
  from swe_tf.data.text import cached_tokenizer

  records.write_glue_directory(
    glue_files,
    task,
    options.output_dir,
    tokenizer=cached_tokenizer.CachedTokenizer(
      options.vocab, options.lower_case
    ),
    max_seq_length=options.max_seq_length,
  )
