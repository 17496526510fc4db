"""GLUE files as they really are, and their faults by file and line."""

import pytest

from swe_tf import errors
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import tasks as glue_tasks

_PAIR = '{"premise": "p", "hypothesis": "h", "label": "%s"}\n'


def _read(tmp_path, task, content, name="dev.tsv", **kwargs):
  path = tmp_path / name
  path.write_bytes(content.encode() if isinstance(content, str) else content)
  file = glue_examples.read_glue_file(
    path, glue_tasks.find_task(task), **kwargs
  )
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
    ("STS-B", "sentence1\tsentence2\tscore\na\tb\t3.8\n", [(0, "a", "b", 3.8)]),
    ("AX", "Premise\tHypothesis\tLabel\na\tb\tneutral\n", [(0, "a", "b", 2)]),
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
    ("SST-2", "sentence\ngood\n", "dev:1: no column 'label'"),
    (
      "SST-2",
      "sentence\tlabel\na\t1\nb\t2\n",
      "dev:3: label '2' is not one of",
    ),
    (
      "RTE",
      "sentence1\tsentence2\tlabel\na\tb\tentailment\na\tentailment\n",
      "dev:3: 2 tab-separated columns where 3 are expected",
    ),
    ("CoLA", "gj04\t1\tBill sat.\n", "dev:1: 3 tab-separated columns"),
    (
      "STS-B",
      "sentence1\tsentence2\tscore\na\tb\t5.1\n",
      "dev:2: label '5.1' is not a number from 0 to 5",
    ),
    ("STS-B", "sentence1\tsentence2\tscore\na\tb\tnan\n", "dev:2: label"),
    (
      "SST-2",
      b"sentence\tlabel\ngood\t1\n\xff\t1\n",
      "dev:3: byte 0xff is not",
    ),
    ("QQP", "1\t2\t3\ta\tb 0\n", "no usable example among its 1 lines"),
    ("SST-2", "", "is empty"),
    ("MNLI", _PAIR % "neutral" + "{", "jsonl:2: not JSON"),
    ("MNLI", _PAIR % "neutral" + "[]", "jsonl:2: not a JSON object"),
    (
      "MNLI",
      _PAIR % "neutral" + '{"premise": "p", "label": "neutral"}',
      "jsonl:2: no 'hypothesis'",
    ),
  ],
)
def test_faults(tmp_path, task, content, message):
  name = "dev.jsonl" if task == "MNLI" else "dev"
  with pytest.raises(errors.UsageError, match=message) as error:
    _read(tmp_path, task, content, name)
  assert "\n" not in str(error.value)


def test_directory(tmp_path):
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
