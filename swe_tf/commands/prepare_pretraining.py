r"""The `swe prepare pretraining` command: text files to masked TFRecords.

    swe prepare pretraining --input='wiki/*.txt.gz,books/*.txt' \
      --vocab=vocab.txt --output_dir=DIR --masking=whole_word

Model Garden's stock loader reads the shards. They are a function of the text
and the flags, whatever --jobs is. A run that was stopped goes on with the
missing shards when it is called again.
"""

from collections.abc import Sequence
import os

from absl import app
from absl import flags
from rich import console as rich_console

from swe_tf import files
from swe_tf.data.prepare import job as prepare_job

_INPUT = flags.DEFINE_string(
  "input", None, "Text files: paths or globs, separated by commas."
)
_VOCAB = flags.DEFINE_string("vocab", None, "WordPiece vocabulary file.")
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", None, "Directory for the shards, vocab.txt and manifest.json."
)
_MASKING = flags.DEFINE_enum(
  "masking", "random", ["random", "whole_word"], "What is masked together."
)
_MASKING_RATE = flags.DEFINE_float(
  "masking_rate",
  0.15,
  "The part of the tokens to predict.",
  lower_bound=0.01,
  upper_bound=0.9,
)
_SEQ_LENGTH = flags.DEFINE_integer(
  "seq_length", 512, "Length of every sequence.", lower_bound=8
)
_MAX_PREDICTIONS = flags.DEFINE_integer(
  "max_predictions_per_seq",
  None,
  "Most predictions in a sequence. By default seq_length * masking_rate, "
  "rounded up.",
  lower_bound=1,
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of the masks and of the order.", lower_bound=0
)
_LOWER_CASE = flags.DEFINE_bool(
  "lower_case", True, "Whether the vocabulary is an uncased one."
)
_NEXT_SENTENCE = flags.DEFINE_bool(
  "next_sentence", False, "Make sentence pairs, as the original BERT has."
)
_DUPE_FACTOR = flags.DEFINE_integer(
  "dupe_factor",
  1,
  "How often each sequence is written, with other masks.",
  lower_bound=1,
)
_NUM_SHARDS = flags.DEFINE_integer(
  "num_shards",
  None,
  "Number of shards. By default one for every 16 MB of text.",
  lower_bound=1,
)
_LEARN_VOCAB = flags.DEFINE_integer(
  "learn_vocab",
  None,
  "Learn a vocabulary of about this size from the text. It is written to "
  "vocab.txt in --output_dir, and to --vocab if that is given.",
  lower_bound=100,
)
_JOBS = flags.DEFINE_integer(
  "jobs",
  None,
  "Number of processes. By default one a core, if the text is worth it.",
  lower_bound=1,
)


@files.one_line_errors("swe prepare pretraining")
def main(argv: Sequence[str]) -> int | None:
  """Makes the shards and says how to train on them."""
  files.refuse_arguments(argv[1:])
  files.require(input=_INPUT.value, output_dir=_OUTPUT_DIR.value)
  if not _LEARN_VOCAB.value:
    files.require(vocab=_VOCAB.value)
  # Tokenizing is work for the CPU, and the result must not depend on a GPU.
  os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  console = rich_console.Console(stderr=True, highlight=False)
  options = prepare_job.Options(
    input=_INPUT.value,
    output_dir=_OUTPUT_DIR.value,
    vocab=_VOCAB.value,
    learn_vocab=_LEARN_VOCAB.value,
    num_shards=_NUM_SHARDS.value,
    max_predictions_per_seq=_MAX_PREDICTIONS.value,
    jobs=_JOBS.value,
    seq_length=_SEQ_LENGTH.value,
    masking=_MASKING.value,
    masking_rate=_MASKING_RATE.value,
    lower_case=_LOWER_CASE.value,
    next_sentence=_NEXT_SENTENCE.value,
    dupe_factor=_DUPE_FACTOR.value,
    seed=_SEED.value,
  )
  try:
    made = prepare_job.prepare(options, console)
  except KeyboardInterrupt:
    console.print("Stopped. The same command goes on where it stopped.")
    return 130
  settings = made["settings"]
  print(
    f"{made['examples']:,} examples, {made['tokens']:,} tokens, "
    f"{made['predictions']:,} predictions. Train with\n"
    f"  input_path: {options.path('*.tfrecord')}\n"
    f"  seq_length: {settings['seq_length']}\n"
    f"  max_predictions_per_seq: {settings['max_predictions_per_seq']}\n"
    f"  use_next_sentence_label: {str(settings['next_sentence']).lower()}"
  )
  return None


if __name__ == "__main__":
  app.run(main)
