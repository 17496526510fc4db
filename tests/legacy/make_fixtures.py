r"""Makes the fixtures of this folder, with the code of an older commit.

    cd OLD && PYTHONPATH=OLD python -m tests.legacy.make_fixtures DIR

They were made with commit 6aa71fbb21a861fea955985dafaea33638d224ea, which has
to be in OLD; this folder's Python files were copied into its `tests`. The
script is kept to show where the fixtures are from. It calls functions of that
commit and is not expected to run with any other.

All commands and runs have DIR as their working directory, so that the paths in
what they write are relative. `swe finetune` makes them absolute: in its files
DIR is replaced by the word LEGACY.

    records/            random masked examples, as `tests/tiny.py` writes them
    pretraining/NAME/   `stopped_STEP/` is a run that was stopped, `final.npz`
                        its weights and slots after the old code had resumed
                        and ended it: the same ones for every step
    inputs/, prepared/  text, and what `swe prepare` made of it
    study/              a study, and the finished runs of `swe sweep`
    finetune/finished/  a finished `swe finetune`
    finetune/stopped/   the first run of it, stopped in the middle; `final.npz`
                        has the weights and slots of the finished one
    report/             the tables of `swe report` about the runs above
    machine.json        where all this was computed
"""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf
import tf_keras
import yaml

from official.core import train_utils
from official.modeling import performance
from swe_tf.finetune import experiment
from swe_tf.finetune import plan
from swe_tf.finetune import run as run_lib
from tests import tiny
from tests.data import corpus
from tests.legacy import machine

_RECORDS = "records/records-*.tfrecord"
_PLACEHOLDER = "LEGACY"
_SENTENCES = 120
_GLUE_EXAMPLES = 32
_QUESTIONS = 6
_GLUE_STOP = 7
_GLUE_RUN = plan.Run(1e-3, 0)
# How often the run was saved, what the checkpoint is made of, and constants.
_NOT_WEIGHTS = ("save_counter", "_CHECKPOINTABLE_OBJECT_GRAPH", "optimizer/")
_FINETUNE = (
  "finetune",
  "--task=SST-2",
  "--checkpoint=study/runs/swe-seed1",
  "--data_dir=prepared/SST-2",
  "--epochs=3",
  "--params_override=task.train_data.global_batch_size=8",
)


def _task(num_layers, **config):
  model = {"encoder": {"any": {"num_layers": num_layers}}}
  return {"task": {"model": model, **config}}


def _sharing(num_layers=2, **config):
  return _task(num_layers, sharing=config)


def _growing(num_layers, method, *fractions):
  return _task(
    num_layers,
    sharing={"mode": "none"},
    growth={"method": method, "fractions": list(fractions)},
  )


def _by_correlation(rule, rho, patience):
  return _sharing(4, rule=rule, check_interval=2, rho=rho, patience=patience)


def _optimizer(**config):
  return {"trainer": {"optimizer_config": config}}


_FLOAT16_AND_EMA = {
  "runtime": {"mixed_precision_dtype": "float16", "loss_scale": 512.0},
  **_optimizer(ema={"average_decay": 0.9}),
}
_STAGED = _sharing(
  4, rule="staged", stages=[{"unit_size": 2, "from_step": 4}], untie_step=7
)

# Overrides of `tiny.overrides`, and the steps after which the run is stopped.
_RUNS = {
  "baseline": (_sharing(mode="none"), (5,)),
  "baseline_float16_ema": (
    {**_sharing(mode="none"), **_FLOAT16_AND_EMA},
    (5,),
  ),
  "swe": ({}, (5, 7, 9)),  # Shared, at tau, untied.
  "swe_float16_ema": (_FLOAT16_AND_EMA, (5,)),
  "swe_new_optimizer": (
    _optimizer(optimizer={"type": "adam_experimental"}),
    (5,),
  ),
  "swe_units_of_two": (_sharing(4, unit_size=2), (5,)),
  "staged": (_STAGED, (5,)),
  # Unties after step 6, when it has counted to 3.
  "adaptive": (_by_correlation("adaptive", rho=0.99, patience=3), (5,)),
  # Splits after step 6, and unties after step 8.
  "split": (_by_correlation("split", rho=0.8, patience=2), (7,)),
  "reparameterize": (_sharing(mode="reparameterize"), (5,)),
  "stem_branch": (_sharing(mode="stem_branch"), (5,)),
  "net2net": (_growing(2, "net2net", 0.6), (5, 9)),  # Grows after step 7.
  # Grows after steps 3 and 7.
  "stacking": (_growing(4, "stacking", 0.25, 0.6), (2, 5, 9)),
}


def _swe(*arguments):
  """Runs a command in the working directory."""
  print("swe", *arguments, flush=True)
  subprocess.run(
    [sys.executable, "-m", "swe_tf.cli", *arguments],
    check=True,
    stdout=subprocess.DEVNULL,
  )


def _make_runner(config, model_dir):
  """Returns a runner, as `tests/sharing/test_trainer.py` makes it."""
  tf_keras.backend.clear_session()
  performance.set_mixed_precision_policy(
    config.runtime.mixed_precision_dtype or "float32"
  )
  return tiny.make_runner(config, model_dir)


def _stop_and_resume(config, directory, stop):
  """Stops a run after a step; returns how it ends if a copy is resumed."""
  print(f"== {directory}", flush=True)
  runner = _make_runner(config, str(directory))
  train_utils.serialize_config(config, str(directory))
  runner.controller.train(stop)
  shutil.rmtree(directory / "train")  # Summaries; no run reads them.
  with tempfile.TemporaryDirectory() as scratch:
    copy = shutil.copytree(directory, pathlib.Path(scratch, "run"))
    runner = _make_runner(config, str(copy))
    runner.controller.train(config.trainer.train_steps)
    return tiny.final_state(runner.trainer)


def _make_pretraining(name, override, stops):
  """Makes the directories of a run that was stopped after some steps."""
  config = tiny.config_of(
    tiny.overrides(_RECORDS), {"trainer": {"max_to_keep": 1}}, override
  )
  folder = pathlib.Path("pretraining", name)
  first, *others = (
    _stop_and_resume(config, folder / f"stopped_{stop}", stop) for stop in stops
  )
  for other in others:
    np.testing.assert_equal(other, first)
  np.savez_compressed(folder / "final.npz", **first)


def _write_inputs():
  """Writes a text, a vocabulary, a GLUE task and a SQuAD file."""
  folder = pathlib.Path("inputs")
  (folder / "SST-2").mkdir(parents=True)
  corpus.write(str(folder), corpus=corpus.text(_SENTENCES))
  sentences = [
    each.rstrip(".!?") for each in corpus.sentences(3 * _GLUE_EXAMPLES, 1)
  ]
  for split in ("train", "dev", "test"):
    rows = [
      f"{sentences.pop()}\t{index % 2}" for index in range(_GLUE_EXAMPLES)
    ]
    if split == "test":
      rows = [f"{i}\t{row.split(chr(9))[0]}" for i, row in enumerate(rows)]
    head = "index\tsentence" if split == "test" else "sentence\tlabel"
    (folder / "SST-2" / f"{split}.tsv").write_text("\n".join([head, *rows, ""]))
  paragraphs = []
  for index, context in enumerate(corpus.sentences(_QUESTIONS, 2)):
    answer = context.split()[0].rstrip(".!?")
    paragraphs.append(
      {
        "context": context,
        "qas": [
          {
            "id": f"q{index}",
            "question": corpus.sentences(1, 3 + index)[0],
            "answers": [{"text": answer, "answer_start": 0}],
          }
        ],
      }
    )
  (folder / "squad.json").write_text(
    json.dumps(
      {"version": "1.1", "data": [{"title": "a", "paragraphs": paragraphs}]}
    )
  )


def _prepare():
  """Prepares the inputs, each as the test does it again."""
  _swe(
    "prepare",
    "pretraining",
    "--input=inputs/corpus.txt",
    "--vocab=inputs/vocab.txt",
    "--output_dir=prepared/pretraining",
    "--seq_length=16",
    "--num_shards=2",
    "--masking=whole_word",
  )
  _swe(
    "prepare",
    "glue",
    "--task=SST-2",
    "--input_dir=inputs/SST-2",
    "--vocab=inputs/vocab.txt",
    "--output_dir=prepared/SST-2",
    "--max_seq_length=32",
  )
  for split in ("train", "eval"):
    _swe(
      "prepare",
      "squad",
      "--input=inputs/squad.json",
      "--version=1.1",
      "--vocab=inputs/vocab.txt",
      "--output_dir=prepared/squad",
      f"--split={split}",
      "--max_seq_length=32",
      "--max_query_length=12",
      "--doc_stride=8",
    )


def _run_study():
  """Runs a study of three methods on the prepared text."""
  folder = pathlib.Path("study")
  folder.mkdir()
  base = tiny.overrides("prepared/pretraining/*.tfrecord")
  base["task"]["model"]["encoder"]["any"] |= {
    "vocab_size": len(corpus.tokens()),
    "max_position_embeddings": 32,
    "dropout_rate": 0.1,
    "attention_dropout_rate": 0.1,
  }
  (folder / "base.yaml").write_text(yaml.safe_dump(base))
  (folder / "study.yaml").write_text(
    yaml.safe_dump(
      {
        "experiment": "swe/bert_pretraining",
        "config_files": ["base.yaml"],
        "overrides": {
          "runtime": {"distribution_strategy": "off"},
          "trainer": {"max_to_keep": 1, "validation_interval": 6},
        },
        "axes": {"method": ["baseline", "swe", "net2net"], "seed": [1]},
      }
    )
  )
  _swe("sweep", "study/study.yaml", "--output_dir=study/runs")


def _finetune():
  """Finishes a sweep, and stops its first run once more in the middle."""
  finished = pathlib.Path("finetune/finished")
  stopped = pathlib.Path("finetune/stopped")
  _swe(*_FINETUNE, "--learning_rates=1e-3,1e-2", f"--output_dir={finished}")
  run = stopped / _GLUE_RUN.name
  run.mkdir(parents=True)
  shutil.copy(finished / "sweep.json", stopped)
  sweep = json.loads((finished / "sweep.json").read_text())
  settings = plan.Settings(
    **sweep["settings"] | {"checkpoint": sweep["checkpoint"]}
  )
  config = experiment.build_config(settings, _GLUE_RUN)
  runner, _ = run_lib._make_runner(config, str(run), lambda *told: None)  # pylint: disable=protected-access
  train_utils.serialize_config(config, str(run))
  with runner.strategy.scope():
    runner.controller.train(_GLUE_STOP)
  ended = finished / _GLUE_RUN.name
  reader = tf.train.load_checkpoint(str(ended))
  np.savez_compressed(
    stopped / "final.npz",
    **{
      name: reader.get_tensor(name)
      for name in reader.get_variable_to_shape_map()
      if not name.startswith(_NOT_WEIGHTS)
    },
  )
  for name in ("dev.tsv", "result.json"):
    shutil.copy(ended / name, stopped / f"final_{name}")


def _report():
  with tempfile.TemporaryDirectory() as scratch:
    _swe(
      "report",
      "--runs=study/runs,finetune/finished",
      f"--output_dir={scratch}/report",
    )
    pathlib.Path("report").mkdir()
    for path in pathlib.Path(scratch, "report").glob("*.csv"):
      shutil.copy(path, "report")


def _leave_out(folder: pathlib.Path):
  """Removes what nobody reads again, and the name of this machine."""
  for path in sorted(folder.rglob("*")):
    in_study = path.is_relative_to(folder / "study" / "runs")
    in_finished = path.is_relative_to(folder / "finetune" / "finished")
    in_stopped = path.is_relative_to(folder / "finetune" / "stopped")
    is_checkpoint = path.name == "checkpoint" or path.name.startswith("ckpt-")
    is_summary = path.name.startswith("events.out.tfevents.")
    if (
      path.name in ("log.txt", "run.lock")
      or is_checkpoint
      and (in_finished or in_study and path.parent.name != "swe-seed1")
      or is_summary
      and (in_finished or in_stopped)
    ):
      path.unlink()
    elif is_summary:
      time = path.name.split(".")[3]
      path.rename(path.with_name(f"events.out.tfevents.{time}.host.1.0.v2"))
    elif path.suffix in (".json", ".yaml", ".txt"):
      text = path.read_text()
      path.write_text(re.sub(re.escape(str(folder)), _PLACEHOLDER, text))
  for path in sorted(folder.rglob("*"), reverse=True):
    if path.is_dir() and not any(path.iterdir()):
      path.rmdir()


def main():
  """Makes everything in the directory that the command line names."""
  folder = pathlib.Path(sys.argv[1]).resolve()
  (folder / "records").mkdir(parents=True)
  with contextlib.chdir(folder):
    pathlib.Path("machine.json").write_text(
      json.dumps(machine.describe(), indent=2) + "\n"
    )
    _write_inputs()
    _prepare()
    _run_study()
    _finetune()
    _report()
    tiny.write_records("records", num_files=2, per_file=20)
    for name, (override, stops) in _RUNS.items():
      _make_pretraining(name, override, stops)
    _leave_out(folder)


if __name__ == "__main__":
  main()
