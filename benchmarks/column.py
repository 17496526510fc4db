r"""Runs a column of the paper on small subsets of real data, killed twice.

    python -m benchmarks.column --data=DATA --weights=WEIGHTS \
      --output_dir=runs/small_column

DATA has `glue/` and `squad/`; WEIGHTS is a BERT in Hugging Face's layout. Where
there is no training set (MNLI, QNLI, QQP, SQuAD v2.0), examples of the dev set
that are not scored stand in for it. The scores of so few examples mean nothing;
this demonstrates the way from files to a column. `swe finetune` is killed with
SIGKILL in the middle of its second and of its fourth task, called again, and
the column and the report are printed.
"""

import csv
import itertools
import json
import pathlib
import signal
import subprocess
import sys
import time

from absl import app
from absl import flags

_DATA = flags.DEFINE_string("data", None, "Real data.", required=True)
_WEIGHTS = flags.DEFINE_string("weights", None, "A BERT.", required=True)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Where.", required=True)
_EXAMPLES = flags.DEFINE_integer("examples", 32, "Examples of each set.")

# The columns of GLUE's own files.
_HEADS = {
  "MNLI": ("sentence1", "sentence2", "gold_label"),
  "QNLI": ("question", "sentence", "label"),
  "QQP": ("question1", "question2", "is_duplicate"),
  "SST-2": ("sentence", "label"),
  "AX": ("sentence1", "sentence2"),
}
_DEVS = {"MNLI": ("dev_matched", "dev_mismatched"), "AX": ()}
# Tasks in which it is killed, in the middle of a run.
_KILLED = ("squad_v2.0", "QNLI")


def _rows(path: pathlib.Path, columns) -> list[list[str]]:
  """Returns the given columns of a TSV file, from complete rows only."""
  with open(path, encoding="utf-8-sig", newline="") as file:
    lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
  head = lines[0]
  if isinstance(columns[0], str):
    columns = [head.index(name) for name in columns]
    lines = lines[1:]
  return [
    [line[column] for column in columns]
    for line in lines
    if len(line) > max(columns)
  ]


def _examples(data: pathlib.Path, task: str) -> list[list[str]]:
  """Returns labelled examples of a task; for AX all, without labels."""
  folder, heads = data / "glue" / task, _HEADS[task]
  if task == "MNLI":
    found = map(json.loads, open(folder / "dev_matched.jsonl"))
    return [[e["premise"], e["hypothesis"], e["label"]] for e in found]
  if task == "QQP":
    return _rows(folder / "dev_subset.tsv", (3, 4, 5))
  if task == "AX":
    return _rows(folder / "diagnostic.tsv", heads)
  return _rows(folder / "dev.tsv", heads)


def _write(path: pathlib.Path, task: str, rows) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  with open(path, "w", encoding="utf-8") as file:
    file.write("\t".join(("index", *_HEADS[task])) + "\n")
    for index, row in enumerate(rows):
      file.write("\t".join((str(index), *row)) + "\n")


def _questions(path: pathlib.Path, split: str, count: int) -> dict:
  """Returns a SQuAD file with some of its paragraphs, one question each."""
  content = json.loads(path.read_text())
  paragraphs = [
    {**paragraph, "qas": paragraph["qas"][:1]}
    for article in content["data"]
    for paragraph in article["paragraphs"]
  ]
  first = 0 if split == "train" else 3 * count
  # Every third paragraph, so that some have no answer in v2.0.
  chosen = list(itertools.islice(paragraphs, first, first + 3 * count, 3))
  if split == "train":  # A training set has one answer per question.
    for question in (question for each in chosen for question in each["qas"]):
      question["answers"] = question["answers"][:1]
  return content | {"data": [{"title": "", "paragraphs": chosen}]}


def _swe(*arguments: str) -> None:
  print("$ swe", *arguments, flush=True)
  subprocess.run([sys.executable, "-m", "swe_tf.cli", *arguments], check=True)


def _prepare(data: pathlib.Path, output: pathlib.Path, count: int) -> None:
  """Cuts the subsets out of the real data and prepares them."""
  vocab = output / "encoder" / "vocab.txt"
  common = (f"--vocab={vocab}",)
  for task in _HEADS:
    rows, raw = _examples(data, task), output / "raw" / task
    if task == "AX":
      _write(raw / "diagnostic.tsv", task, rows)
    else:
      _write(raw / "train.tsv", task, rows[:count])
      for number, name in enumerate(_DEVS.get(task, ("dev",)), start=1):
        part = rows[count * number : count * (number + 1)]
        _write(raw / f"{name}.tsv", task, part)
    _swe(
      "prepare",
      "glue",
      f"--task={task}",
      f"--input_dir={raw}",
      f"--output_dir={output / 'data' / task}",
      *common,
    )
  for version in ("1.1", "2.0"):
    source = data / "squad" / f"dev-v{version}.json"
    for split in ("train", "eval"):
      raw = output / "raw" / f"{split}-v{version}.json"
      raw.write_text(json.dumps(_questions(source, split, count)))
      _swe(
        "prepare",
        "squad",
        f"--version={version}",
        f"--split={split}",
        f"--input={raw}",
        f"--output_dir={output / 'data' / f'squad_v{version}'}",
        *common,
      )


def _kill_in(task: str, command: list[str], output: pathlib.Path) -> None:
  """Starts a command and kills it when a run of the task has a checkpoint."""
  process = subprocess.Popen(command)
  while process.poll() is None:
    if list((output / "column" / task).glob("lr*/ckpt-*.index")):
      process.send_signal(signal.SIGKILL)
    time.sleep(0.05)
  print(f"killed in {task}: status {process.returncode}", flush=True)
  if process.returncode != -signal.SIGKILL:
    raise SystemExit(f"it ended before it could be killed in {task}")


def main(argv):
  del argv
  data, output = pathlib.Path(_DATA.value), pathlib.Path(_OUTPUT_DIR.value)
  output.mkdir(parents=True)
  _swe(
    "import",
    "--format=huggingface",
    f"--input_dir={_WEIGHTS.value}",
    f"--output_dir={output / 'encoder'}",
  )
  _prepare(data, output, _EXAMPLES.value)
  arguments = [
    "finetune",
    "--tasks=paper",
    f"--checkpoint={output / 'encoder'}",
    f"--data_dir={output / 'data'}",
    f"--output_dir={output / 'column'}",
    "--learning_rates=5e-5",
    "--seeds=1",
    "--epochs=2",
    "--params_override=task.train_data.global_batch_size=8,"
    "task.validation_data.global_batch_size=8,trainer.checkpoint_interval=2,"
    "trainer.steps_per_loop=2,trainer.summary_interval=2",
  ]
  command = [sys.executable, "-m", "swe_tf.cli", *arguments]
  for task in _KILLED:
    print("$ swe", *arguments, flush=True)
    _kill_in(task, command, output)
  _swe(*arguments)
  _swe(
    "report", f"--runs={output / 'column'}", f"--output_dir={output / 'report'}"
  )
  print((output / "report" / "columns.csv").read_text())


if __name__ == "__main__":
  app.run(main)
