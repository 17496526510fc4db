"""GLUE records, read back through Model Garden's data loader."""

import json

import pytest

from official.nlp.data import sentence_prediction_dataloader as dataloader
from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.commands import prepare_glue
from swe_tf.data.text import tokenizers

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


@pytest.fixture(name="prepare")
def _prepare(tmp_path, vocab):
  """Writes the files of a task, and their records with the command."""

  def prepare(task, output="out", **contents):
    folder = tmp_path / task
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
      (folder / f"{name}.tsv").write_text(content)
    prepare_glue.run(
      prepare_glue.Options(
        task=task,
        input_dir=str(folder),
        vocab=str(vocab),
        output_dir=str(tmp_path / output),
        max_seq_length=8,
      )
    )
    return tmp_path / output

  return prepare


def test_pair_of_texts(prepare):
  out = prepare(
    "RTE",
    dev="sentence1\tsentence2\tlabel\n"
    "Good films.\tbad\tnot_entailment\n"
    "the the the the\ta b c\tentailment\n",
  )
  first, second = _load(out / "dev.tf_record")
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


def test_left_out_rows_and_regression(prepare):
  out = prepare("QQP", "qqp", dev="broken\n1\t2\t3\ta\tb\t1\n")
  (row,) = _load(out / "dev.tf_record")
  assert (row["label_ids"], row["example_id"]) == (1, 1)
  out = prepare("STS-B", dev="sentence1\tsentence2\tscore\na\tb\t2.5\n")
  (row,) = _load(out / "dev.tf_record", label_type="float")
  assert row["label_ids"] == 2.5


@pytest.mark.parametrize("lower_case", [True, False])
def test_tokens_are_those_of_the_full_tokenizer(vocab, lower_case):
  ours = tokenizers.CachedTokenizer(vocab, lower_case)
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


def test_directory(tmp_path, prepare):
  sound = {
    "train": "sentence\tlabel\na\t1\nb\t0\n",
    "dev": "sentence\tlabel\na\t1\n",
    "test": "index\tsentence\n0\ta\n",
  }
  out = prepare("SST-2", **sound)
  splits = [f"{name}.tf_record" for name in sound]
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
  assert [row["label_ids"] for row in _load(out / "test.tf_record")] == [-1]

  # An error is one line, raised before anything is written.
  with pytest.raises(errors.UsageError) as error:
    prepare("SST-2", "second", dev="sentence\tlabel\na\t7\n")
  assert str(error.value) == (
    f"{tmp_path}/SST-2/dev.tsv:2: label '7' is not one of 0, 1, the labels of "
    "SST-2."
  )
  assert not (tmp_path / "second").exists()
  # Nothing is overwritten.
  (tmp_path / "third").mkdir()
  (tmp_path / "third/dev.tf_record").write_text("precious")
  with pytest.raises(errors.UsageError, match="dev.tf_record is already there"):
    prepare("SST-2", "third", **sound)
  assert [path.name for path in (tmp_path / "third").iterdir()] == [
    "dev.tf_record"
  ]
