"""Answers found in a graph against Model Garden's post-processing."""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from swe_tf.convert import squad_answers
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.studies.finetune import samples

# Among them: unknown characters, accents, words that are split or cut at
# punctuation, white space of all kinds, and characters that WordPiece drops.
_TEXT = """the a of Cat cats CATS. cat's (cat) cat-Cat, Été e\u0301te\u0301\
 naïve ☃ $5,000.00 1914–1918 #tag ## don't I.B.M. 北京 a北b İstanbul ½ “quoted”\
 zero\u200bwidth no\u00a0break narrow\u202fspace soft\u00adhyphen"""
_WORDS = _TEXT.split(" ")
_SPACES = [" ", " ", " ", "  ", " \u3000 ", "\n", "\t", " \r\n"]
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_PIECES = [*_LETTERS, *(f"##{c}" for c in _LETTERS), *".,'()-–$#“”"]
_PIECES += ["the", "cat", "##ts", "##ai", "ete", "Cat", "of", "CATS"]
_VOCABULARIES = {
  "lower_case": _PIECES,
  "cased": [*_PIECES, *"ITBMCE", "É"],
  "characters": [" ", *_LETTERS, *".,'()-–$#“é"],
}
_WINDOWS = squad_records.Windows(
  max_seq_length=48, max_query_length=12, doc_stride=10
)
_LIMITS = {"n_best_size": 15, "max_answer_length": 20}
_COUNT = 150


def _paragraphs(rng):
  """Yields contexts of a few words and of several windows."""
  for index in range(_COUNT):
    words = rng.choices(_WORDS, k=rng.choice([3, 8, 40]))
    spaces = rng.choices(_SPACES, k=len(words))
    question = " ".join(rng.choices(_WORDS, k=rng.choice([1, 9])))
    asked = {"id": str(index), "question": question, "answers": []}
    yield {"context": "".join(map("".join, zip(words, spaces))), "qas": [asked]}


def _logits(ids):
  """Returns logits that any implementation has alike, with many ties."""
  table = np.random.default_rng(0).normal(size=[97, 2]).round(1)
  places = tf.range(_WINDOWS.max_seq_length) % 7
  hashed = (tf.cast(ids, tf.int32) * 31 + places * 17) % len(table)
  return tf.unstack(tf.gather(table.astype(np.float32), hashed), axis=-1)


@pytest.mark.parametrize("kind", list(_VOCABULARIES))
def test_answers_are_those_of_model_garden(kind, tmp_path):
  vocab, lower_case = tmp_path / "vocab.txt", kind != "cased"
  tokens = dict.fromkeys([*vocab_lib.SPECIAL_TOKENS, *_VOCABULARIES[kind]])
  vocab.write_text("\n".join(tokens))
  paragraphs = list(_paragraphs(random.Random(0)))
  data = tmp_path / "data.json"
  data.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
  tokenizer = tokenizers.CachedTokenizer(vocab, lower_case)
  built = squad_records.build_eval_features(
    data, version="2.0", tokenizer=tokenizer, windows=_WINDOWS
  )
  assert len(built[1]) > 2 * _COUNT
  results = [
    samples.squad_logits(each, *(x.numpy() for x in _logits(each.input_ids)))
    for each in built[1]
  ]
  wanted = squad_records.answers_from_logits(
    built, results, version="2.0", do_lower_case=lower_case, **_LIMITS
  )
  answer = squad_answers.make_answer_fn(
    lambda inputs: _logits(inputs["input_word_ids"]),
    tokenizers.make(vocab_lib.Vocabulary.load(vocab), lower_case),
    _WINDOWS,
    **_LIMITS,
  )
  contexts = [each["context"] for each in paragraphs]
  questions = [each["qas"][0]["question"] for each in paragraphs]
  found = tf.function(answer)(tf.constant(questions), tf.constant(contexts))
  for i, context in enumerate(contexts):
    text = found["answer"][i].numpy().decode()
    assert text in context
    if text:  # Otherwise there the odds are the score of no answer.
      odds = found["null_odds"][i].numpy()
      assert odds == pytest.approx(wanted.null_odds[str(i)])
    assert squeezed(text) == squeezed(wanted.texts[str(i)]), context


def squeezed(text):
  """Returns a text with single spaces where a context is split at any."""
  for space in "\t\r\n\u202f":
    text = text.replace(space, " ")
  return " ".join(filter(None, text.split(" ")))
