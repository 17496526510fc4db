"""SQuAD records: spans in, logits out, the same answers at both ends."""

import json
import math

import numpy as np
import pytest

from official.nlp.data import question_answering_dataloader as dataloader
from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.commands import prepare_squad
from swe_tf.data.prepare import manifest
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import tokenizers
from swe_tf.scoring import squad as squad_scores
from tests.studies.finetune import samples

_TOKENS = (
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##s", ".", "(", ")", "?"),
  *("what", "where", "1230", "km", "the", "rhine", "is", "a", "long", "river"),
  *("in", "europe", "and", "flows", "north", "to", "sea"),
)
_OF_FILE = ("file", "fingerprint")
_CONTEXT = (
  "The Rhine is a long river in Europe, and flows north to the sea. "
  "The Rhine (1230 km) is a long river."
)
_WINDOWS = squad_records.Windows(
  max_seq_length=16, max_query_length=4, doc_stride=5
)


def _question(name, answers=(), is_impossible=False):
  return {
    "id": name,
    "question": "What flows where?",
    "is_impossible": is_impossible,
    "answers": [
      {"text": text, "answer_start": _CONTEXT.index(text)} for text in answers
    ],
  }


_QAS = [
  _question("river", ["The Rhine"]),
  _question("number", ["1230"]),  # Not a word by itself.
  _question("where", ["to the sea"]),
  _question("none", is_impossible=True),
]


@pytest.fixture(name="tokenizer")
def _tokenizer(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("".join(f"{token}\n" for token in _TOKENS))
  return tokenizers.CachedTokenizer(path)


def _write(tmp_path, qas, **kwargs):
  paragraphs = [{"context": _CONTEXT, "qas": qas}]
  content = {"data": [{"title": "Rhine", "paragraphs": paragraphs}]}
  path = tmp_path / "squad.json"
  path.write_text(json.dumps(content, **kwargs))
  return path


def _load(path, is_training):
  params = dataloader.QADataConfig(
    input_path=str(path),
    seq_length=_WINDOWS.max_seq_length,
    global_batch_size=1,
    is_training=False,
    drop_remainder=False,
  )
  loader = dataloader.QuestionAnsweringDataLoader(params)
  loader._is_training = is_training  # Training repeats without end.
  return [
    [{name: value.numpy()[0] for name, value in part.items()} for part in batch]
    for batch in loader.load()
  ]


@pytest.fixture(name="prepare")
def _prepare(tmp_path, tokenizer):
  """Returns a function that adds a split to a directory."""
  path = _write(tmp_path, _QAS)

  def prepare(split, folder="out", version="2.0", **kwargs):
    return squad_records.write_squad_directory(
      squad_questions.read_squad_file(path, version),
      split,
      tmp_path / folder,
      **{"tokenizer": tokenizer, "windows": _WINDOWS, **kwargs},
    )

  return prepare


def test_training_spans_are_the_answers(tmp_path, tokenizer, prepare):
  made = prepare("train")["splits"]["train"]
  records = _load(tmp_path / "out/train.tf_record", is_training=True)
  # Windows of 9 tokens (16 less 4 of the question and 3 special ones) that
  # advance by 5, until the last one reaches the end.
  tokens = len(tokenizer.tokenize(_CONTEXT))
  assert len(records) == made["size"] == 4 * (math.ceil((tokens - 9) / 5) + 1)
  assert (made["questions"], made["dropped_questions"]) == (4, 0)
  found = set()
  for inputs, spans in records:
    tokens = [tokenizer.vocabulary.tokens[i] for i in inputs["input_word_ids"]]
    span = tokens[spans["start_positions"] : spans["end_positions"] + 1]
    found.add(" ".join(span))
    if span != ["[CLS]"]:
      assert inputs["input_type_ids"][spans["start_positions"]] == 1
  assert found == {"the rhine", "1230", "to the sea", "[CLS]"}

  # The features are those of the slow tokenizer.
  features = []
  for maker in (tokenizer, tokenization.FullTokenizer(tokenizer.vocab_file)):
    some = []
    path = tmp_path / "squad.json"
    squad_records.convert(path, "2.0", maker, _WINDOWS, True, some.append)
    features.append([vars(feature) for feature in some])
  assert features[0] == features[1] and features[0]


def _perfect_logits(built):
  """Returns logits that peak at the first gold answer in each window."""
  golds = {
    "river": ["the", "rhine"],
    "number": ["1230"],
    "where": ["to", "the", "sea"],
    "none": ["long", "river"],
  }
  results = []
  examples, features = built
  for feature in features:
    start, end = np.full([2, _WINDOWS.max_seq_length], -5.0)
    name = examples[feature.example_index].qas_id
    gold = golds[name]
    for place in feature.token_to_orig_map:
      if feature.tokens[place : place + len(gold)] == gold:
        start[place] = end[place + len(gold) - 1] = 5.0
        break
    start[0] = end[0] = 9.0 if name == "none" else 0.0
    results.append(samples.squad_logits(feature, start, end))
  return results


@pytest.mark.parametrize("version", squad_questions.VERSIONS)
def test_logits_become_the_answers(tmp_path, tokenizer, prepare, version):
  path = _write(tmp_path, _QAS if version == "2.0" else _QAS[:3])
  prepare("eval", version=version)
  built = squad_records.build_eval_features(
    path, version=version, tokenizer=tokenizer, windows=_WINDOWS
  )
  # The records are the windows, in the same order.
  records = _load(tmp_path / "out/eval.tf_record", is_training=False)
  assert [int(inputs["unique_ids"]) for inputs, _ in records] == [
    feature.unique_id for feature in built[1]
  ]

  results = _perfect_logits(built)
  answers = squad_records.answers_from_logits(built, results, version=version)
  data = squad_questions.read_squad_file(path, version)
  decided = answers.decide(0.0)
  assert squad_scores.evaluate(data, decided)["exact_match"] == 100.0
  if version == "2.0":
    # An answer is kept for the question without one, and only there it is
    # worse than none.
    assert answers.texts["none"] == "long river"
    assert decided["none"] == ""
    assert answers.decide(math.inf) == answers.texts
    scores = squad_scores.evaluate(
      data, answers.texts, na_probs=answers.null_odds
    )
    assert scores["best_f1"] == 100.0
  with pytest.raises(ValueError, match="no logits for 1 of .*drop_remainder"):
    squad_records.answers_from_logits(built, results[:-1], version=version)


def test_splits_share_a_directory(tmp_path, prepare):
  out = tmp_path / "out"
  prepare("train")
  meta = prepare("eval")
  train, dev = (
    {k: v for k, v in meta["splits"][split].items() if k not in _OF_FILE}
    for split in ("train", "eval")
  )
  assert train == dev
  for split in ("train", "eval"):
    assert meta[f"{split}_data_size"] == meta["splits"][split]["size"]
  assert meta == json.loads((out / "manifest.json").read_text())
  assert (out / "eval.json").read_text() == (
    tmp_path / "squad.json"
  ).read_text()
  with pytest.raises(errors.UsageError, match="eval.tf_record is already"):
    prepare("eval")
  manifest.read(out)
  for name in ("train.tf_record", "eval.json"):
    content = (out / name).read_bytes()
    (out / name).write_bytes(content[:-1])
    with pytest.raises(errors.UsageError, match=f"{name} is cut or has"):
      manifest.read(out)
    (out / name).write_bytes(content)
  vocab = tmp_path / "cased.txt"
  vocab.write_text("\n".join([*_TOKENS[:5], *map(str.upper, _TOKENS[5:])]))
  with pytest.raises(errors.UsageError, match="UNK.*set lower_case to false"):
    prepare("eval", "new", tokenizer=tokenizers.CachedTokenizer(vocab))
  assert not (tmp_path / "new").exists()
  (out / "train.tf_record").unlink()
  other = squad_records.Windows(max_seq_length=32, max_query_length=4)
  with pytest.raises(errors.UsageError, match="max_seq_length 16, but now"):
    prepare("train", windows=other)


@pytest.mark.parametrize(
  "change, message",
  [
    ({"answers": [{"text": "Rhein", "answer_start": 4}]}, "where 'Rhine' st"),
    ({"answers": [{"text": "sea."}]}, "has no valid answer_start"),
    ({"answers": [{"text": "The", "answer_start": 0}] * 2}, "the split eval"),
    ({"is_impossible": None}, "is_impossible is None; .*version 1.1"),
    ({"question": 5}, 'no "question" of text'),
    ({"answers": [{"text": "", "answer_start": 5}]}, "an answer is empty"),
  ],
)
def test_faults_have_file_and_line(tmp_path, tokenizer, change, message):
  path = _write(
    tmp_path, [_QAS[0], {**_question("bad", ["long"]), **change}], indent=1
  )
  line = path.read_text().split('"bad"')[0].count("\n") + 1
  options = prepare_squad.Options(
    input=str(path),
    version="2.0",
    vocab=tokenizer.vocab_file,
    output_dir=str(tmp_path / "out"),
    split="train",
  )
  with pytest.raises(errors.UsageError, match=message) as error:
    prepare_squad.run(options)
  assert str(error.value).startswith(f"{path}:{line}: bad: ")
  assert "\n" not in str(error.value)
  assert not (tmp_path / "out").exists()


def test_faults_in_the_structure(tmp_path):
  for qas, message in (
    ([_QAS[0], _QAS[0]], ":1: river: the id is used twice"),
    ([{"id": "x"}], ":1: x: no list 'answers'"),
    ([_QAS[3]], ":1: none: no answers, but in v1.1"),
    ([], "has no questions"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      squad_questions.read_squad_file(_write(tmp_path, qas), "1.1")
  with pytest.raises(errors.UsageError, match="leaves no token"):
    squad_records.Windows(max_seq_length=64, max_query_length=64)
