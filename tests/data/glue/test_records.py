"""GLUE files and their faults; records, read back by Model Garden's loader."""

import json

import pytest

from official.nlp.data import sentence_prediction_dataloader as dataloader
from official.nlp.tools import tokenization
from swe_tf import errors
from swe_tf.commands import prepare_glue
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks
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
  sizes = {"input_path": str(path), "seq_length": 8, "global_batch_size": 1}
  all_of_it = {"is_training": False, "drop_remainder": False}
  params = dataloader.SentencePredictionDataConfig(
    include_example_id=True, **sizes, **all_of_it, **kwargs
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
    places = {"input_dir": str(folder), "output_dir": str(tmp_path / output)}
    prepare_glue.run(
      prepare_glue.Options(
        task=task, vocab=str(vocab), max_seq_length=8, **places
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


def test_regression(prepare):
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
  (path,) = (tmp_path / "third").iterdir()
  assert path.name == "dev.tf_record"


_PAIR = '{"premise": "p", "hypothesis": "h", "label": "%s"}\n'


def _read(tmp_path, task, content, name="dev.tsv", **kwargs):
  path = tmp_path / name
  path.write_bytes(content.encode() if isinstance(content, str) else content)
  known = glue_tasks.find_task(task)
  file = glue_examples.read_glue_file(path, known, **kwargs)
  return file, [(row.index, *row.texts, row.label) for row in file.examples]


@pytest.mark.parametrize(
  "task, content, rows",
  [
    # A quote is a character like any other, also at the start of a cell.
    (
      "MRPC",
      "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
      '1\t7\t8\t"He said\tShe, "said"\r\n0\t7\t8\tx\t"y\r\n',
      [(0, '"He said', 'She, "said"', 1), (1, "x", '"y', 0)],
    ),
    # No header.
    (
      "CoLA",
      "gj04\t1\t\tBill sat.\ngj04\t0\t*\tBill sat it.\n",
      [(0, "Bill sat.", 1), (1, "Bill sat it.", 0)],
    ),
    # Two formats.
    ("SST-2", "sentence\tlabel\ngood \t1\n", [(0, "good ", 1)]),
    ("SST-2", "label\tcontent\n1\tgood\n", [(0, "good", 1)]),
    # The premise comes first, wherever its column is.
    (
      "MNLI-mm",
      "index\tlabel1\thypothesis\tpremise\tgold_label\n"
      "9\tneutral\th\tp\tentailment\n",
      [(0, "p", "h", 1)],
    ),
  ],
)
def test_layouts(tmp_path, task, content, rows):
  file, found = _read(tmp_path, task, content)
  assert found == rows and file.labelled and not file.dropped


def test_rows_left_out_keep_their_numbers(tmp_path):
  broken = "1\t2\t3\ta\tb 0\n"
  content = f"{broken}4\t5\t6\tc\td\t1\n{broken}4\t5\t6\te\tf\t0\n"
  file, found = _read(tmp_path, "QQP", content)
  assert found == [(1, "c", "d", 1), (3, "e", "f", 0)] and file.dropped == 2
  content = _PAIR % "-" + _PAIR % "neutral"
  file, found = _read(tmp_path, "MNLI", content, "dev_matched.jsonl")
  assert found == [(1, "p", "h", 2)] and file.dropped == 1
  # Test files have no labels.
  content = "index\tsentence\n0\tBill sat.\n"
  file, found = _read(tmp_path, "CoLA", content, needs_labels=False)
  assert found == [(0, "Bill sat.", None)] and not file.labelled


@pytest.mark.parametrize(
  "task, content, message",
  [
    (
      "SST-2",
      "text\tlabel\ngood\t1\n",
      "dev:1: no column 'sentence' or 'content', which SST-2 needs; found "
      "'text', 'label'",
    ),
    ("SST-2", "sentence\tlabel\na\t1\nb\t2\n", "dev:3: label '2' is not one"),
    ("CoLA", "gj04\t1\tBill sat.\n", "dev:1: 3 tab-separated columns"),
    (
      "STS-B",
      "sentence1\tsentence2\tscore\na\tb\t5.1\n",
      "dev:2: label '5.1' is not a number from 0 to 5",
    ),
    ("SST-2", b"sentence\tlabel\na\t1\n\xff\t1\n", "dev:3: byte 0xff is not"),
    ("QQP", "1\t2\t3\ta\tb 0\n", "no usable example among its 1 lines"),
    ("SST-2", "", "is empty"),
    ("MNLI", _PAIR % "neutral" + "{", "jsonl:2: not JSON"),
    ("MNLI", _PAIR % "neutral" + "[]", "jsonl:2: not a JSON object"),
    (
      "MNLI",
      _PAIR % "neutral" + '{"premise": "p", "label": "neutral"}',
      "jsonl:2: no text or number 'hypothesis'",
    ),
  ],
)
def test_faults(tmp_path, task, content, message):
  name = "dev.jsonl" if task == "MNLI" else "dev"
  with pytest.raises(errors.UsageError, match=message) as error:
    _read(tmp_path, task, content, name)
  assert "\n" not in str(error.value)


def test_files_of_a_directory(tmp_path):
  task = glue_tasks.find_task("MRPC")
  with pytest.raises(errors.UsageError, match="has no train, dev, test"):
    glue_examples.read_glue_directory(tmp_path, task)
  row = "sentence1\tsentence2\tlabel\na\tb\t1\n"
  (tmp_path / "test.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tb\n")
  (tmp_path / "train.tsv").write_text(row)
  (tmp_path / "dev_ids.tsv").write_text("1\n2\n")
  found = glue_examples.read_glue_directory(tmp_path, task)
  assert [file.path.stem for file in found] == ["train", "test"]
  (tmp_path / "train.jsonl").write_text("{}")
  with pytest.raises(errors.UsageError, match="both train.tsv and train.jsonl"):
    glue_examples.read_glue_directory(tmp_path, task)
  with pytest.raises(errors.UsageError, match="'SST'; did you mean SST-2"):
    glue_tasks.find_task("SST")
