"""Tokens per second: `swe prepare pretraining` against Model Garden's script.

    python -m benchmarks.tokenization [--text=FILE] [--vocab=FILE]

Both turn the same text into masked TFRecords, interleaved in this process on
one core; a ratio is the median over the rounds. Tokens are those of the text.
Model Garden's script always makes sentence pairs; ours never does, as the
paper's runs need none. Start-up (imports, building graphs) is not counted on
either side. Seconds are CPU seconds.

Without --text the docstrings of the installed packages are used; without
--vocab a vocabulary is first learned from the text, which takes a minute.
"""

import os
import random
import statistics
import tempfile

from absl import app
from absl import flags
import tensorflow as tf

from benchmarks import common
from official.nlp.data import create_pretraining_data
from official.nlp.tools import tokenization
from swe_tf.data.prepare import manifest
from swe_tf.data.prepare import shards
from swe_tf.data.text import docstrings
from swe_tf.data.text import vocab as vocab_lib

_TEXT = flags.DEFINE_string("text", None, "Text file; default: docstrings.")
_VOCAB = flags.DEFINE_string("vocab", None, "WordPiece vocabulary.")
_MEGABYTES = flags.DEFINE_float("megabytes", 1.0, "How much text to use.")
_SEQ_LENGTH = flags.DEFINE_integer("seq_length", 512, "Sequence length.")
_WHOLE_WORD = flags.DEFINE_bool("whole_word", False, "Whole-word masking.")
_REPEATS = flags.DEFINE_integer("repeats", 5, "Runs of each side.")

_RATE = 0.15
_REQUIRED_RATIO = 20


def _inputs(folder):
  """Returns the path of the text to use, and that of the vocabulary."""
  source = _TEXT.value or docstrings.write_corpus(folder).train
  with open(source, "rb") as f:
    text = f.read(int(_MEGABYTES.value * 1e6)).rsplit(b"\n", 1)[0]
  path = os.path.join(folder, "text.txt")
  with open(path, "wb") as f:
    f.write(text)
  if _VOCAB.value:
    return path, _VOCAB.value
  vocabulary = vocab_lib.learn_wordpieces(text.split(b"\n"), 8000)
  vocab = os.path.join(folder, "learned.txt")
  with open(vocab, "w", encoding="utf-8") as f:
    f.writelines(f"{token}\n" for token in vocabulary.tokens)
  return path, vocab


def _model_garden(text, vocab, output, max_predictions):
  """Returns a function that runs Model Garden's script on the text."""
  tokenizer = tokenization.FullTokenizer(vocab)
  read = create_pretraining_data.get_processor_text_fn(False, True)

  def run():
    instances = create_pretraining_data.create_training_instances(
      [text],
      tokenizer,
      read,
      _SEQ_LENGTH.value,
      dupe_factor=1,
      short_seq_prob=0.1,
      masked_lm_prob=_RATE,
      max_predictions_per_seq=max_predictions,
      rng=random.Random(0),
      do_whole_word_mask=_WHOLE_WORD.value,
    )
    create_pretraining_data.write_instance_to_example_files(
      instances,
      tokenizer,
      _SEQ_LENGTH.value,
      max_predictions,
      [output],
      gzip_compress=False,
      use_v2_feature_names=False,
    )

  return run


def _swe(text, vocab, output_dir, max_predictions):
  """Returns a function that runs ours on the text."""
  vocabulary = vocab_lib.Vocabulary.load(vocab)
  settings = manifest.Settings(
    seq_length=_SEQ_LENGTH.value,
    max_predictions_per_seq=max_predictions,
    masking="whole_word" if _WHOLE_WORD.value else "random",
    masking_rate=_RATE,
    num_shards=1,
  )
  writer = shards.ShardWriter(settings, vocabulary, output_dir)
  writer.write(0, b"A sentence to build the graphs with.")

  def run():
    with open(text, "rb") as f:
      writer.write(0, f.read())

  return run


def main(argv):
  del argv
  tf.get_logger().setLevel("ERROR")
  os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
  max_predictions = manifest.max_predictions(_SEQ_LENGTH.value, _RATE)
  with tempfile.TemporaryDirectory() as folder:
    text, vocab = _inputs(folder)
    tokenizer = tokenization.FullTokenizer(vocab)
    with open(text, encoding="utf-8") as f:
      tokens = sum(len(tokenizer.tokenize(line)) for line in f)
    output = os.path.join(folder, "output.tfrecord")
    arguments = (text, vocab, output, max_predictions)
    ours = (text, vocab, folder, max_predictions)
    sides = {
      "Model Garden": _model_garden(*arguments),
      "swe prepare": _swe(*ours),
    }
    # CPU time excludes other processes on the core.
    _, work = common.take_turns(sides, _REPEATS.value)
  print(f"text: {tokens:,} tokens, sequences of {_SEQ_LENGTH.value}, one core")
  ratio = 0.0
  for name in sides:
    seconds = statistics.median(work[name])
    ratio = common.median_ratio(work, "Model Garden", name)
    print(f"{name:<28}{tokens / seconds:12,.0f} tokens/s, ratio {ratio:.1f}")
  print(f"required of the last ratio: {_REQUIRED_RATIO}")
  return 0 if ratio >= _REQUIRED_RATIO else 1


if __name__ == "__main__":
  app.run(main)
