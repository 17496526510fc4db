r"""Converts text files to masked TFRecords.

    swe prepare pretraining --input='wiki/*.txt.gz,books/*.txt' \
      --vocab=vocab.txt --output_dir=DIR --masking=whole_word

With `--tfds=wikipedia/20230601.en` instead of `--input`, TFDS downloads the
text. Model Garden's stock loader reads the shards. They depend only on the text
and the flags, not on --jobs. Re-run it after Ctrl-C to make the missing shards.
"""

import dataclasses
import os

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import options as options_lib
from swe_tf.data.prepare import job
from swe_tf.data.text import text_files


@dataclasses.dataclass(frozen=True)
class Options(job.Options):
  """The options of the job, as flags."""

  input: str = options_lib.flag(
    "Text files, or TFRecords with a feature `text`: comma-separated paths or "
    "globs.",
    "",
  )
  tfds: str | None = options_lib.flag(
    "A TensorFlow dataset with a feature `text`, instead of --input.",
    None,
  )
  split: str = options_lib.flag("With --tfds: its split.", "train")
  vocab: str | None = options_lib.flag("WordPiece vocabulary file.", None)
  output_dir: str = options_lib.flag(
    "Directory for the shards, vocab.txt and manifest.json."
  )
  masking: str = options_lib.flag(
    "Mask tokens independently, or whole words.",
    "random",
    choices=("random", "whole_word"),
  )
  masking_rate: float = options_lib.flag(
    "The fraction of the tokens to predict.",
    0.15,
    lower_bound=0.01,
    upper_bound=0.9,
  )
  seq_length: int = options_lib.flag(
    "Length of every sequence.", 512, lower_bound=8
  )
  max_predictions_per_seq: int | None = options_lib.flag(
    "Maximum predictions in a sequence. The default is seq_length * "
    "masking_rate, rounded up.",
    None,
    lower_bound=1,
  )
  seed: int = options_lib.flag(
    "Seed for the masks and the order.", 0, lower_bound=0
  )
  lower_case: bool = options_lib.flag(
    "Lower-case the text, for an uncased vocabulary.", True
  )
  next_sentence: bool = options_lib.flag(
    "Make sentence pairs, as in the original BERT.", False
  )
  dupe_factor: int = options_lib.flag(
    "How many times each sequence is written, with new masks each time.",
    1,
    lower_bound=1,
  )
  num_shards: int | None = options_lib.flag(
    "Number of shards. The default is one for every 16 MB of text.",
    None,
    lower_bound=1,
  )
  learn_vocab: int | None = options_lib.flag(
    "Learn a vocabulary of about this size from the text. It is written to "
    "vocab.txt in --output_dir, and to --vocab if that is given.",
    None,
    lower_bound=100,
  )
  jobs: int | None = options_lib.flag(
    "Number of processes. The default is one per core if there is enough text.",
    None,
    lower_bound=1,
  )

  def __post_init__(self):
    if bool(self.input) == bool(self.tfds):
      raise errors.UsageError("give either --input or --tfds; see --help.")
    if not self.vocab and not self.learn_vocab:
      raise errors.UsageError("--vocab is missing; give it or --learn_vocab.")


def run(options: Options) -> None:
  """Makes the shards and prints how to train on them."""
  files.check_output_dir(options.output_dir, "output_dir")
  # Tokenizing runs on the CPU, and the result must not depend on a GPU.
  os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
  console = rich_console.Console(stderr=True, highlight=False)
  if options.tfds:
    paths = text_files.files_of_tfds(options.tfds, options.split)
    options = dataclasses.replace(options, input=",".join(paths), tfds=None)
  try:
    made = job.prepare(options, console)
  except KeyboardInterrupt:
    console.print("Stopped. Re-run the command to resume.")
    raise
  corpus = made["splits"]["train"]
  print(
    f"{corpus['size']:,} examples, {corpus['tokens']:,} tokens, "
    f"{corpus['predictions']:,} predictions. Train with\n"
    f"  input_path: {options.path('*.tfrecord')}\n"
    f"  seq_length: {made['max_seq_length']}\n"
    f"  max_predictions_per_seq: {made['max_predictions_per_seq']}\n"
    f"  use_next_sentence_label: {str(made['next_sentence']).lower()}"
  )
