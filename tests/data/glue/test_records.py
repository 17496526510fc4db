"""GLUE records, read back through Model Garden's data loader."""

import json

import pytest

from official.nlp.data import sentence_prediction_dataloader as dataloader
from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.commands import prepare_glue
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import records as glue_records
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.text import cached_tokenizer

_TOKENS = (
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "good", "bad", "film"),
  *("##s", "##ing", ".", ",", "a", "b", "c", "cafe", "½", "…", "日", "[", "]"),
  "sep",
)


@pytest.fixture(name="vocab")
def _vocab(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("".join(f"{token}\n" for token in _TOKENS))
  return path


def _load(path, **kwargs):
  """Returns the examples that Model Garden's loader reads."""
  params = dataloader.SentencePredictionDataConfig(
    input_path=str(path),
    seq_length=8,
    global_batch_size=1,
    is_training=False,
    drop_remainder=False,
    include_example_id=True,
    **kwargs,
  )
  batches = dataloader.SentencePredictionDataLoader(params).load()
  return [
    {name: value.numpy()[0].tolist() for name, value in batch.items()}
    for batch in batches
  ]


def _write(tmp_path, vocab, task_name, name, content, **kwargs):
  task = glue_tasks.find_task(task_name)
  (tmp_path / name).write_text(content)
  glue_file = glue_examples.read_glue_file(tmp_path / name, task, **kwargs)
  tokenizer = cached_tokenizer.CachedTokenizer(vocab)
  glue_records.write_glue_records(
    glue_file,
    task,
    tmp_path / "out.tf_record",
    tokenizer=tokenizer,
    max_seq_length=8,
  )
  return tmp_path / "out.tf_record"


def test_pair_of_texts(tmp_path, vocab):
  path = _write(
    tmp_path,
    vocab,
    "RTE",
    "dev.tsv",
    "sentence1\tsentence2\tlabel\n"
    "Good films.\tbad\tnot_entailment\n"
    "the the the the\ta b c\tentailment\n",
  )
  first, second = _load(path)
  words = lambda row: " ".join(_TOKENS[i] for i in row.pop("input_word_ids"))
  assert words(first) == "[CLS] good film ##s . [SEP] bad [SEP]"
  assert first == {
    "input_mask": [1] * 8,
    "input_type_ids": [0] * 6 + [1] * 2,
    "label_ids": 1,
    "example_id": 0,
  }
  # Five tokens are left for seven: the longer text loses the first one, and
  # of two that are as long the second.
  assert words(second) == "[CLS] the the the [SEP] a b [SEP]"
  assert (second["label_ids"], second["example_id"]) == (0, 1)


def test_unlabelled_and_left_out_rows(tmp_path, vocab):
  path = _write(
    tmp_path,
    vocab,
    "SST-2",
    "test.tsv",
    "index\tsentence\n0\ta\n",
    needs_labels=False,
  )
  assert [example["label_ids"] for example in _load(path)] == [-1]
  path = _write(tmp_path, vocab, "QQP", "dev.tsv", "broken\n1\t2\t3\ta\tb\t1\n")
  assert [
    (example["label_ids"], example["example_id"]) for example in _load(path)
  ] == [(1, 1)]


def test_regression(tmp_path, vocab):
  path = _write(
    tmp_path,
    vocab,
    "STS-B",
    "dev.tsv",
    "sentence1\tsentence2\tscore\na\tb\t2.5\n",
  )
  (example,) = _load(path, label_type="float")
  assert example["label_ids"] == 2.5


@pytest.mark.parametrize("lower_case", [True, False])
def test_tokens_are_those_of_the_full_tokenizer(vocab, lower_case):
  ours = cached_tokenizer.CachedTokenizer(vocab, lower_case)
  theirs = tokenization.FullTokenizer(str(vocab), lower_case)
  for text in (
    "The good films, the BAD films.",
    "",
    "  a   b ",
    "a\tb\nc",
    "a\x1cb c\x85a",
    "Café ½ … a日b",
    "[SEP] x[SEP]",
    "a\u00a0b",
    "a\u200bb \ufffd",
    "a" * 500,
  ):
    for _ in range(2):  # The second time from the cache.
      assert ours.tokenize(text) == theirs.tokenize(text), repr(text)


def _prepare(tmp_path, vocab, **kwargs):
  flags = {
    "task": "SST-2",
    "input_dir": str(tmp_path / "in"),
    "vocab": str(vocab),
    "output_dir": str(tmp_path / "out"),
    "max_seq_length": 8,
    **kwargs,
  }
  prepare_glue.run(prepare_glue.Options(**flags))


def test_command(tmp_path, vocab):
  (tmp_path / "in").mkdir()
  (tmp_path / "in/train.tsv").write_text("sentence\tlabel\na\t1\nb\t0\n")
  (tmp_path / "in/dev.tsv").write_text("sentence\tlabel\na\t1\n")
  (tmp_path / "in/test.tsv").write_text("index\tsentence\n0\ta\n")
  _prepare(tmp_path, vocab)
  out = tmp_path / "out"
  splits = [f"{name}.tf_record" for name in ("dev", "test", "train")]
  assert sorted(path.name for path in out.iterdir()) == sorted(
    [*splits, "manifest.json", "vocab.txt"]
  )
  meta = json.loads((out / "manifest.json").read_text())
  names = ("train", "eval", "test")
  assert [meta[f"{name}_data_size"] for name in names] == [2, 1, 1]
  assert (meta["num_labels"], meta["max_seq_length"]) == (2, 8)
  assert (meta["kind"], meta["vocab_size"]) == ("glue", len(_TOKENS))
  assert not meta["splits"]["test"]["labelled"]
  assert len(_load(out / "train.tf_record")) == 2

  # A fault is one line, told before anything is written.
  (tmp_path / "in/dev.tsv").write_text("sentence\tlabel\na\t7\n")
  with pytest.raises(errors.UsageError) as error:
    _prepare(tmp_path, vocab, output_dir=str(tmp_path / "second"))
  assert str(error.value) == (
    f"{tmp_path}/in/dev.tsv:2: label '7' is not one of 0, 1, the labels of "
    "SST-2."
  )
  assert not (tmp_path / "second").exists()


def test_nothing_is_overwritten(tmp_path, vocab):
  (tmp_path / "dev.tsv").write_text("sentence\tlabel\na\t1\n")
  (tmp_path / "out").mkdir()
  (tmp_path / "out/dev.tf_record").write_text("precious")
  task = glue_tasks.find_task("SST-2")
  with pytest.raises(errors.UsageError, match="dev.tf_record is already there"):
    glue_records.write_glue_directory(
      glue_examples.read_glue_directory(tmp_path, task),
      task,
      tmp_path / "out",
      tokenizer=cached_tokenizer.CachedTokenizer(vocab),
    )
  assert [path.name for path in (tmp_path / "out").iterdir()] == [
    "dev.tf_record"
  ]
