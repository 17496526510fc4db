"""Runs `swe demo`: a study of a small, deep Pre-LN BERT on characters.

It is `swe/bert_pretraining_text` with other numbers, trained on the docstrings
of the installed packages. The second arm is the same without sharing.
"""

import os
from typing import Any

from rich import console as rich_console

from official.core import exp_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import parsing
from swe_tf.data.text import docstrings
from swe_tf.methods import catalog
from swe_tf.modeling import registry as encoders
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies.demo import page

_JOB = "swe_tf.studies.jobs:demo"
_EXPERIMENT = "swe/bert_pretraining_text"
ENCODER: dict[str, Any] = {
  "hidden_size": 64,
  "num_layers": 12,
  "num_attention_heads": 4,
  "intermediate_size": 128,
  # More than the demo needs: fine-tuning has longer texts, and pairs of them.
  "max_position_embeddings": 128,
  "type_vocab_size": 2,
  # 1/sqrt(width): BERT's 0.02 is meant for a width of 1024.
  "initializer_range": 0.12,
  "dropout_rate": 0.0,
  "attention_dropout_rate": 0.0,
}
DATA: dict[str, Any] = {
  "tokenizer": "character",
  "seq_length": 32,
  "masking_rate": 0.32,
  "global_batch_size": 64,
}
OVERRIDES: dict[str, Any] = {
  "task": {"model": {"mlm_initializer_range": 0.12}},
  "runtime": {"distribution_strategy": "off"},
  "trainer": {
    "train_steps": 700,
    "steps_per_loop": 10,
    "summary_interval": 10,
    "checkpoint_interval": 350,
    "validation_interval": 50,
    "validation_steps": 20,
    "max_to_keep": 2,
    "optimizer_config": {
      "learning_rate": {"polynomial": {"initial_learning_rate": 3e-3}},
      "warmup": {"polynomial": {"warmup_steps": 40}},
    },
  },
}
_SHARES_NOTHING = {
  "task": {"sharing": {"mode": catalog.NONE, "recipe": "", "loops": []}}
}


def make_study(
  corpus: docstrings.CorpusPaths | None, params_override: str | None
) -> study_file.Study:
  """Returns the demo as a study of two arms, or of one if it shares nothing.

  Args:
    corpus: The text; None before there is any, to check `params_override`.
    params_override: As for `swe train`; may be empty.

  Raises:
    UsageError: If `params_override` does not fit.
  """
  config = exp_factory.get_exp_config(_EXPERIMENT)
  encoder = encoders.require_encoder(config.task.as_dict())
  size, task = dict(ENCODER), {"train_data": DATA, "validation_data": DATA}
  if corpus is not None:
    size["vocab_size"] = len(files.read_text(corpus.vocab).splitlines())
    vocab = {"vocab_file_path": corpus.vocab}
    task = {
      "train_data": DATA | vocab | {"input_path": corpus.train},
      "validation_data": DATA | vocab | {"input_path": corpus.validation},
    }
  for overrides in (OVERRIDES, {"task": {**encoder.overrides(**size), **task}}):
    config.override(overrides, is_strict=True)
  # Before the arms: the baseline shares nothing, whatever is overridden.
  config = parsing.apply_overrides(config, params_override)
  arms = {page.MODEL: {}, page.BASELINE: _SHARES_NOTHING}
  if config.task.sharing.mode == catalog.NONE:
    del arms[page.BASELINE]
  return study_file.Study(
    experiment=_EXPERIMENT,
    config_files=(),
    overrides=config.as_dict(),
    metrics=("validation_loss", "masked_lm_accuracy"),
    runs=study_file.plan_runs({"arm": arms}),
  )


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo, resumes it, or shows a finished one again.

  Args:
    output_dir: Directory for the corpus, the runs and the page.
    params_override: As for `swe train`; applies to all runs.
  """
  sweep.leave_gpus_to_runs()
  without_data = make_study(None, params_override)
  experiments.make_configs(without_data, has_data=False)
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  console.print("reading the docstrings of the installed packages ...")
  corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  study = make_study(corpus, params_override)
  runs, failures = sweep.run_study(
    study,
    experiments.make_configs(study),
    output_dir,
    executors.Local(len(study.runs)),
    console,
    function=_JOB,
  )
  for name, error in failures.items():
    raise errors.Failed(f"{name}: {error}")
  arms = {each.name: page.read_arm(each) for each in runs}
  content = files.read_json(files.as_path(output_dir) / "study.json")
  path = os.path.join(output_dir, "index.html")
  entropy = content["unigram_entropy"]
  files.write_text(path, page.make(arms, entropy, output_dir, params_override))
  for name, arm in arms.items():
    console.print(
      f"{name}: {arm.result['seconds']:.0f} s, "
      f"{arm.result['cpu_seconds']:.0f} s of CPU time"
    )
  console.print(page.verdict(arms))
  console.print(f"page: {path}")
