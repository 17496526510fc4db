"""`swe demo`: the main job on this machine, in minutes.

Pre-trains a small, deep Pre-LN BERT on characters of the docstrings that are
installed here, shared for the first tenth of the steps, then untied. It is
`swe/bert_pretraining_text` with other numbers, run by Model Garden's runner.
"""

import collections
import contextlib
import json
import math
import os
import sys
import time

from absl import logging

from swe_tf.data.text import docstrings

OVERRIDES = {
  "task": {
    "model": {
      "encoder": {
        "any": {
          "hidden_size": 64,
          "num_layers": 12,
          "num_attention_heads": 4,
          "intermediate_size": 128,
          # More than it sees here: fine-tuning has longer texts,
          # and pairs of them.
          "max_position_embeddings": 128,
          "type_vocab_size": 2,
          # 1/sqrt(width): BERT's 0.02 is made for a width of 1024.
          "initializer_range": 0.12,
          "dropout_rate": 0.0,
          "attention_dropout_rate": 0.0,
        }
      },
      "mlm_initializer_range": 0.12,
    },
  },
  "runtime": {"distribution_strategy": "off"},
  "trainer": {
    "train_steps": 700,
    "steps_per_loop": 20,
    "summary_interval": 20,
    "checkpoint_interval": 350,
    "validation_interval": 350,
    "validation_steps": 20,
    "max_to_keep": 2,
    "optimizer_config": {
      "learning_rate": {"polynomial": {"initial_learning_rate": 3e-3}},
      "warmup": {"polynomial": {"warmup_steps": 40}},
    },
  },
}


def character_entropy(path: str) -> float:
  """Returns the entropy in nats of the lower-cased characters of a file."""
  with open(path, encoding="utf-8") as file:
    counts = collections.Counter(file.read().lower().replace("\n", " "))
  total = sum(counts.values())
  return -sum(n / total * math.log(n / total) for n in counts.values())


def _config(corpus: docstrings.CorpusPaths, params_override: str | None):
  """Returns the experiment config of the demo."""
  from official.core import exp_factory
  from official.modeling import hyperparams
  from swe_tf import registry  # noqa: F401 (registers)

  data = {
    "vocab_file_path": corpus.vocab,
    "tokenizer": "character",
    "seq_length": 32,
    "masking_rate": 0.32,
    "global_batch_size": 64,
  }
  with open(corpus.vocab, encoding="utf-8") as file:
    vocab_size = len(file.read().splitlines())
  config = exp_factory.get_exp_config("swe/bert_pretraining_text")
  config.override(OVERRIDES)
  config.override(
    {
      "task": {
        "model": {"encoder": {"any": {"vocab_size": vocab_size}}},
        "train_data": {"input_path": corpus.train, **data},
        "validation_data": {"input_path": corpus.validation, **data},
      }
    }
  )
  if params_override:
    config = hyperparams.override_params_dict(
      config, params_override, is_strict=True
    )
  config.validate()
  config.lock()
  return config


class _Progress:
  """An orbit action that moves a progress bar and tells of the untying."""

  def __init__(self, bar, task_id, trainer):
    self._bar, self._task_id, self._trainer = bar, task_id, trainer
    self._phase = trainer.phase

  def __call__(self, output) -> None:
    step = int(self._trainer.global_step.numpy())
    self._bar.update(
      self._task_id,
      completed=step,
      description=f"{self._trainer.phase:>8}  loss "
      f"{float(output['training_loss']):.3f}",
    )
    if self._trainer.phase != self._phase:
      self._phase = self._trainer.phase
      tau = int(output["sharing/untie_step"])
      self._bar.console.print(
        f"untied the blocks after step {tau}: each trains by itself now"
      )


def _train_and_evaluate(config, model_dir: str, console) -> None:
  """Runs Model Garden's train_and_eval with a progress bar."""
  from rich import progress
  import tensorflow as tf

  from official.core import task_factory
  from official.core import train_lib
  from official.core import train_utils
  from swe_tf.training import trainer as trainer_lib

  strategy = tf.distribute.get_strategy()
  task = task_factory.get_task(config.task, logging_dir=model_dir)
  trainer = trainer_lib.SharedWeightsTrainer(
    config,
    task,
    model=task.build_model(),
    optimizer=train_utils.create_optimizer(task, config),
  )
  train_utils.serialize_config(config, model_dir)
  bar = progress.Progress(
    progress.TextColumn("{task.description}"),
    progress.BarColumn(),
    progress.MofNCompleteColumn(),
    progress.TimeElapsedColumn(),
    progress.TimeRemainingColumn(),
    console=console,
  )
  runner = train_lib.OrbitExperimentRunner(
    strategy,
    task,
    "train_and_eval",
    config,
    model_dir,
    trainer=trainer,
    train_actions=[
      _Progress(
        bar,
        bar.add_task("starting", total=config.trainer.train_steps),
        trainer,
      )
    ],
  )
  with bar:
    runner.controller.train_and_evaluate(
      train_steps=config.trainer.train_steps,
      eval_steps=config.trainer.validation_steps,
      eval_interval=config.trainer.validation_interval,
    )


def _report(config, model_dir: str, entropy: float, console) -> None:
  """Prints the end of the run and draws its curve."""
  from swe_tf.runs import scalars as curves

  train = curves.read_scalars(os.path.join(model_dir, "train"))
  validation = curves.read_scalars(os.path.join(model_dir, "validation"))
  tau = int(train["sharing/untie_step"][-1][1])
  figure = os.path.join(model_dir, "loss.png")
  curves.plot_loss(
    figure,
    train["training_loss"],
    validation["validation_loss"],
    untie_step=tau,
    entropy=entropy,
    title=f"{config.task.model.encoder.any.num_layers}-layer BERT on "
    "docstrings, shared then untied",
  )
  result = {
    "train_steps": config.trainer.train_steps,
    "untie_step": tau,
    "validation_loss": validation["validation_loss"][-1][1],
    "masked_lm_accuracy": validation["masked_lm_accuracy"][-1][1],
    "entropy_of_single_characters": entropy,
  }
  with open(os.path.join(model_dir, "result.json"), "w") as file:
    json.dump(result, file, indent=2)
  for name, value in result.items():
    console.print(f"  {name:<30}{value:>10.4g}")
  console.print(f"loss curve     {figure}")
  console.print(f"checkpoints    {model_dir}/ckpt-*")
  console.print(f"TensorBoard    tensorboard --logdir={model_dir}")


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo; a second call resumes it, or reports it if it is done.

  Args:
    output_dir: Directory for the corpus and the run.
    params_override: Overrides of the experiment, as for `swe train`.
  """
  logging.set_verbosity(logging.ERROR)  # The bar tells what matters.
  from rich import console as console_lib

  console = console_lib.Console(file=sys.stdout)  # Not what replaces it below.
  start = time.time()
  console.print("reading the docstrings of the installed packages ...")
  corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  entropy = character_entropy(corpus.validation)
  console.print("starting TensorFlow and Model Garden ...")
  config = _config(corpus, params_override)
  model_dir = os.path.join(output_dir, "model")
  os.makedirs(model_dir, exist_ok=True)
  log = os.path.join(model_dir, "log.txt")
  with open(log, "a") as file, contextlib.redirect_stdout(file):
    _train_and_evaluate(config, model_dir, console)
  _report(config, model_dir, entropy, console)
  console.print(f"done in {time.time() - start:.0f} s; the full log is {log}")
