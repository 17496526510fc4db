r"""The `swe prepare squad` command: a SQuAD file to TFRecords and `meta.json`.

    swe prepare squad --input=train-v1.1.json --version=1.1 --vocab=FILE \
      --output_dir=DIR
    swe prepare squad --input=dev-v1.1.json --version=1.1 --vocab=FILE \
      --output_dir=DIR

With `--tfds=squad/v1.1 --split=train|eval` in the place of `--input`, TFDS
downloads the data. The two splits share a directory: the second call adds to
the first. The file is read and checked before anything is written.
"""

from collections.abc import Sequence
import pathlib
import tempfile

from absl import app
from absl import flags
from absl import logging

from swe_tf import files
from swe_tf.data.prepare import tfds_files as glue_squad_tfds
from swe_tf.data.squad import questions as squad_questions

_INPUT = flags.DEFINE_string("input", None, "A SQuAD JSON file.")
_TFDS = flags.DEFINE_string(
  "tfds",
  None,
  "Instead of --input, a name of TensorFlow Datasets, such as "
  "squad/v1.1; needs --split.",
)
_VERSION = flags.DEFINE_enum(
  "version", None, squad_questions.VERSIONS, "The version of SQuAD."
)
_VOCAB = flags.DEFINE_string(
  "vocab", None, "Vocabulary file, of word pieces or of characters."
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", None, "Directory for the TFRecords, vocab.txt and meta.json."
)
_SPLIT = flags.DEFINE_enum(
  "split",
  None,
  ["train", "eval"],
  "What the file is for. By default, train "
  "if every question has one answer at most, as in the published train "
  "files, and eval otherwise, as in the published dev files.",
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
  "max_seq_length", 384, "Length of every sequence.", lower_bound=16
)
_MAX_QUERY_LENGTH = flags.DEFINE_integer(
  "max_query_length", 64, "Longer questions are cut.", lower_bound=1
)
_DOC_STRIDE = flags.DEFINE_integer(
  "doc_stride",
  128,
  "Tokens between two windows over a long paragraph.",
  lower_bound=1,
)
_LOWER_CASE = flags.DEFINE_bool(
  "lower_case", True, "Whether the vocabulary is an uncased one."
)


@files.one_line_errors("swe prepare squad")
def main(argv: Sequence[str]) -> None:
  """Reads and checks everything, then writes."""
  files.refuse_arguments(argv[1:])
  files.require(
    input=_INPUT.value or _TFDS.value,
    version=_VERSION.value,
    vocab=_VOCAB.value,
    output_dir=_OUTPUT_DIR.value,
  )
  with tempfile.TemporaryDirectory() as scratch:
    path = _INPUT.value
    if _TFDS.value:
      files.require(split=_SPLIT.value)
      path = pathlib.Path(scratch) / f"{_SPLIT.value}.json"
      glue_squad_tfds.write_squad_file(_TFDS.value, _SPLIT.value, path)
    _prepare(path)


def _prepare(path: files.PathLike) -> None:
  """Converts a SQuAD file."""
  squad = squad_questions.read_squad_file(path, _VERSION.value)
  split = _SPLIT.value or ("train" if squad.looks_like_training else "eval")
  squad_questions.check_convertible(squad, for_training=split == "train")

  # TensorFlow takes seconds to import: faults in the data are told before.
  # pylint: disable=g-import-not-at-top
  from swe_tf.data.squad import records as squad_records
  from swe_tf.data.text import one_at_a_time as glue_squad_tokenizer
  # pylint: enable=g-import-not-at-top

  # Model Garden logs the first examples in full.
  logging.set_verbosity(logging.WARNING)
  squad_records.write_squad_directory(
    squad,
    split,
    _OUTPUT_DIR.value,
    tokenizer=glue_squad_tokenizer.load_tokenizer(
      _VOCAB.value, do_lower_case=_LOWER_CASE.value
    ),
    windows=squad_records.Windows(
      max_seq_length=_MAX_SEQ_LENGTH.value,
      max_query_length=_MAX_QUERY_LENGTH.value,
      doc_stride=_DOC_STRIDE.value,
    ),
  )


if __name__ == "__main__":
  app.run(main)
