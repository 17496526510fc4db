"""SQuAD: an answer anywhere in any paragraph comes back from its window."""

import json
import pathlib
import tempfile

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from swe_tf import errors
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import docstrings
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from tests.studies.finetune import samples

# Each is in the paragraph once, so that a span is known by its words.
_WORDS = ("rhine", "Rivers", "flow(s)", "Köln,", "1230", "seas.", "to", "a-b")
_TOKENS = (
  *vocab_lib.SPECIAL_TOKENS,
  *("rhine", "river", "##s", "flow", "(", "s", ")", "k", "##oln", ",", "1230"),
  *("sea", ".", "to", "a", "-", "b", "what", "?"),
)
_QUERY = 2


@pytest.fixture(scope="module", name="tokenizer", params=["pieces", "letters"])
def _tokenizer(request, tmp_path_factory):
  tokens = _TOKENS
  if request.param == "letters":  # As those of the demo.
    tokens = docstrings.character_vocab([" ".join((*_WORDS, "what?"))], 60)
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("".join(f"{token}\n" for token in tokens))
  return tokenizers.CachedTokenizer(path)


@st.composite
def spans(draw):
  """Makes a paragraph, an answer of whole words in it, and windows."""
  order = draw(st.permutations(_WORDS))
  words = order[: draw(st.integers(1, len(order)))]
  first = draw(st.integers(0, len(words) - 1))
  last = draw(st.integers(first, min(first + 1, len(words) - 1)))
  windows = squad_questions.Windows(
    max_seq_length=_QUERY + 3 + draw(st.integers(1, 12)),
    max_query_length=_QUERY,
    doc_stride=draw(st.integers(1, 6)),
  )
  return words, first, last, windows


def _write(folder, context, text, start):
  path = pathlib.Path(folder) / "squad.json"
  answer = {"text": text, "answer_start": start}
  question = {"id": "q", "question": "What?", "answers": [answer]}
  paragraph = {"context": context, "qas": [question]}
  content = {"data": [{"title": "t", "paragraphs": [paragraph]}]}
  path.write_text(json.dumps(content))
  return path


@given(spans())
def test_an_answer_comes_back_from_the_logits_of_its_window(tokenizer, span):
  words, first, last, windows = span
  text = " ".join(words[first : last + 1])
  start = len(" ".join([*words[:first], ""]))
  with tempfile.TemporaryDirectory() as folder:
    path = _write(folder, " ".join(words), text, start)
    squad = squad_questions.read_squad_file(path, "1.1")
    squad_questions.check_convertible(squad, for_training=True)
    features = []
    how = {"version": "1.1", "tokenizer": tokenizer, "windows": windows}
    squad_records.convert(path, *how.values(), True, features.append)
    built = squad_records.build_eval_features(path, **how)
  pieces = [len(tokenizer.tokenize(word)) for word in words]
  begin, end = sum(pieces[:first]), sum(pieces[: last + 1]) - 1
  room = windows.max_seq_length - _QUERY - 3
  stride = min(windows.doc_stride, room)
  # The obvious way: windows until one reaches the end of the paragraph.
  starts = [0]
  while starts[-1] + room < sum(pieces):
    starts.append(starts[-1] + stride)
  assert len(features) == len(built[1]) == len(starts)
  results, can_answer = [], False
  for at, trained, asked in zip(starts, features, built[1]):
    inside = at <= begin and end < at + room
    offset = _QUERY + 2 - at
    found = (begin + offset, end + offset) if inside else (0, 0)
    assert (trained.start_position, trained.end_position) == found
    # An answer is read only off the window that shows most around its start.
    can_answer |= inside and asked.token_is_max_context[found[0]]
    logits = np.full([2, windows.max_seq_length], -5.0)
    logits[[0, 1], found] = 5.0
    results.append(samples.squad_logits(asked, *logits))
  if can_answer:
    answers = squad_records.answers_from_logits(built, results, version="1.1")
    assert answers.texts == {"q": text}


@given(st.text("ab ", max_size=8), st.text("ab ", max_size=3), st.integers())
def test_an_answer_must_stand_where_it_says(context, text, start):
  with tempfile.TemporaryDirectory() as folder:
    path = _write(folder, context, text, start)
    squad = squad_questions.read_squad_file(path, "1.1")
    is_there = start >= 0 and context[start:].startswith(text)
    if is_there and text.strip():
      squad_questions.check_convertible(squad, for_training=True)
    else:
      message = "answer_start" if text.strip() else "an answer is empty"
      with pytest.raises(errors.UsageError, match=message):
        squad_questions.check_convertible(squad, for_training=True)
