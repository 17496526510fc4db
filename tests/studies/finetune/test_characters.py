"""Models on characters, such as the demo's: the same ids as in pre-training."""

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.studies.finetune import samples

_TEXT = "A  film,\tas  good as\xa0any: 10 of 10!\nTruly ÉTRANGE ☃"


@pytest.fixture(name="vocab_file")
def fixture_vocab_file(tmp_path):
  path = tmp_path / "vocab.txt"
  tokens = docstrings.character_vocab([_TEXT, "abcdefghijklmnopqrstuvwxyz"], 40)
  path.write_text("".join(f"{token}\n" for token in tokens))
  return path


def test_ids_are_those_of_pre_training(vocab_file):
  ours = tokenizers.CachedTokenizer(vocab_file)
  vocabulary = vocab_lib.Vocabulary.load(str(vocab_file))
  theirs = tokenizers.CharacterTokenizer(vocabulary)
  text = _TEXT.replace("\xa0", " ")
  ids = ours.convert_tokens_to_ids(ours.tokenize(text))
  wanted = theirs.tokenize(tf.constant([text]))[0].numpy()
  np.testing.assert_array_equal(ids, wanted)
  # Word by word, as SQuAD's converter asks.
  assert ours.tokenize(text) == [
    token for word in text.split() for token in ours.tokenize(word)
  ]


def _points_after(phrase, feature):
  """Returns logits that point at the word after a phrase, if it is whole."""
  logits = np.zeros([2, 64])
  # One character a token, so that places in the text are places of tokens.
  text = "".join(token if len(token) == 1 else "|" for token in feature.tokens)
  start = text.find(phrase)
  if start >= 0 and " " in text[start + len(phrase) :]:
    start += len(phrase)
    logits[0, start] = logits[1, text.index(" ", start)] = 9.0
  return samples.squad_logits(feature, *logits)


def test_squad_answers_come_back_as_words(vocab_file, tmp_path):
  (tmp_path / "squad").mkdir()
  data_dir = samples.write_data("squad_v1.1", tmp_path / "squad", count=3)
  built = squad_records.build_eval_features(
    f"{data_dir}/eval.json",
    version="1.1",
    tokenizer=tokenizers.CachedTokenizer(vocab_file),
    windows=squad_records.Windows(
      max_seq_length=64, max_query_length=20, doc_stride=16
    ),
  )
  logits = [_points_after("lives in ", each) for each in built.features]
  answers = squad_records.answers_from_logits(built, logits, version="1.1")
  for example in built.examples:
    _, _, after = " ".join(example.doc_tokens).partition("lives in ")
    assert answers.texts[example.qas_id] == after.split()[0]
