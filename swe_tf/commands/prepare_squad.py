r"""Converts a SQuAD file to TFRecords and `manifest.json`.

    swe prepare squad --input=train-v1.1.json --version=1.1 --vocab=FILE \
      --output_dir=DIR
    swe prepare squad --input=dev-v1.1.json --version=1.1 --vocab=FILE \
      --output_dir=DIR

Both splits can go to one directory: the second call adds to what the
first one wrote. The file is read and checked before anything is written.
"""

import dataclasses

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.data.squad import questions
from swe_tf.data.text import vocab as vocab_lib


@dataclasses.dataclass(frozen=True)
class Options(opt.Records):
  input: str = opt.flag("A SQuAD JSON file.")
  version: str = opt.flag("The version of SQuAD.", choices=questions.VERSIONS)
  split: str = opt.flag(
    "What the file is for. The default is train if every question has at most "
    "one answer, as in the published train files, and eval otherwise.",
    "",
    choices=("train", "eval"),
  )
  max_seq_length: int = opt.flag(
    "Length of every sequence.", 384, least=16, most=2**16
  )
  max_query_length: int = opt.flag("Maximum tokens in a question.", 64, least=1)
  doc_stride: int = opt.flag("Tokens between two windows.", 128, least=1)


def run(options: Options) -> None:
  files.check_output_dir(options.output_dir, "output_dir")
  vocab_lib.Vocabulary.load(options.vocab)
  windows = questions.Windows(
    max_seq_length=options.max_seq_length,
    max_query_length=options.max_query_length,
    doc_stride=options.doc_stride,
  )
  squad = questions.read_squad_file(options.input, options.version)
  # In dev files many questions have several answers, in training files none.
  is_dev = any(len(question.answers) > 1 for question in squad.questions)
  split = options.split or ("eval" if is_dev else "train")
  questions.check_convertible(squad, for_training=split == "train")
  # TensorFlow takes seconds to import, so bad data is reported first.
  with messages.during("writing the records"):
    from swe_tf.data.squad import records
    from swe_tf.data.text import tokenizers

    records.write_squad_directory(
      squad,
      split,
      options.output_dir,
      tokenizer=tokenizers.CachedTokenizer(options.vocab, options.lower_case),
      windows=windows,
    )
