"""`swe demo`: the main job on this machine, in minutes.

Pre-trains a small, deep Pre-LN BERT on characters of the docstrings that are
installed here, shared for the first part of the steps, then untied. It is
`swe/bert_pretraining_text` with other numbers, and a sweep of one run.
"""

import collections
from collections.abc import Mapping
import io
import math
import os
import time
from typing import Any

from rich import console as rich_console

from swe_tf import files
from swe_tf.configs import early
from swe_tf.configs import override_text
from swe_tf.data.text import docstrings
from swe_tf.modeling import registry as encoders
from swe_tf.runs import launcher
from swe_tf.runs import scalars
from swe_tf.runs import sweep as sweep_lib
from swe_tf.runs import worker

_EXPERIMENT = "swe/bert_pretraining_text"
ENCODER = {
  "hidden_size": 64,
  "num_layers": 12,
  "num_attention_heads": 4,
  "intermediate_size": 128,
  # More than it sees here: fine-tuning has longer texts, and pairs of them.
  "max_position_embeddings": 128,
  "type_vocab_size": 2,
  # 1/sqrt(width): BERT's 0.02 is made for a width of 1024.
  "initializer_range": 0.12,
  "dropout_rate": 0.0,
  "attention_dropout_rate": 0.0,
}
DATA = {
  "tokenizer": "character",
  "seq_length": 32,
  "masking_rate": 0.32,
  "global_batch_size": 64,
}
OVERRIDES = {
  "task": {"model": {"mlm_initializer_range": 0.12}},
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
  counts = collections.Counter(files.read_text(path).lower().replace("\n", " "))
  total = sum(counts.values())
  return -sum(n / total * math.log(n / total) for n in counts.values())


def make_config(corpus: docstrings.CorpusPaths, params_override: str | None):
  """Returns the experiment config of the demo, locked."""
  from official.core import exp_factory
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.configs import parsing

  vocab_size = len(files.read_text(corpus.vocab).splitlines())
  data = {"vocab_file_path": corpus.vocab, **DATA}
  config = exp_factory.get_exp_config(_EXPERIMENT)
  encoder = encoders.encoder_of(config.task.as_dict())
  assert encoder is not None
  for overrides in (
    OVERRIDES,
    {"task": encoder.overrides(vocab_size=vocab_size, **ENCODER)},
    {
      "task": {
        "train_data": {"input_path": corpus.train, **data},
        "validation_data": {"input_path": corpus.validation, **data},
      }
    },
  ):
    config.override(overrides, is_strict=True)
  config = parsing.apply_overrides(config, params_override)
  config.validate()
  config.lock()
  return config


def check(params_override: str | None) -> None:
  """Raises `UsageError` for wrong overrides, before TensorFlow is imported."""
  encoder = encoders.bert({}).overrides(**ENCODER)
  data = {"train_data": DATA, "validation_data": DATA}
  early.check_layers(
    _EXPERIMENT,
    [
      ("the demo", OVERRIDES),
      ("the demo", {"task": {**encoder, **data}}),
      ("--params_override", override_text.parse(params_override)),
    ],
  )


def train(
  job: worker.Job, corpus: list[str], params_override: str | None
) -> dict[str, Any]:
  """Trains and evaluates: the job of the only run.

  Args:
    job: The job.
    corpus: The fields of `docstrings.CorpusPaths`.
    params_override: As for `swe train`; may be empty.
  """
  from swe_tf.study import jobs

  paths = docstrings.CorpusPaths(*corpus)
  config = make_config(paths, params_override)
  last = {name: c[-1][1] for name, c in jobs.pretrain(job, config).items()}
  result = {
    "train_steps": config.trainer.train_steps,
    "validation_loss": last["validation_loss"],
    "masked_lm_accuracy": last["masked_lm_accuracy"],
    "entropy_of_single_characters": character_entropy(paths.validation),
  }
  tau = _curves(job.path, "train").get("sharing/untie_step")
  if tau:  # It is not there for a run that never shares.
    result["untie_step"] = int(tau[-1][1])
  plot_loss(job.path, result)
  return job.finish(result)


def _curves(model_dir: str, part: str) -> dict[str, scalars.Curve]:
  return scalars.read_scalars(os.path.join(model_dir, part))


def plot_loss(model_dir: str, result: Mapping[str, Any]) -> None:
  """Draws the loss with the untie step marked (Figure 3)."""
  from matplotlib import figure

  drawing = figure.Figure(figsize=(7, 4.2), dpi=120, layout="tight")
  axes = drawing.subplots()
  for part, line, colour in (
    ("training", "-", "#0072B2"),
    ("validation", "o", "#D55E00"),
  ):
    curves = _curves(model_dir, part.removesuffix("ing"))
    axes.plot(*zip(*curves[f"{part}_loss"]), line, color=colour, label=part)
  entropy = result["entropy_of_single_characters"]
  label = "entropy of single tokens"
  axes.axhline(entropy, color="gray", linestyle=":", label=label)
  tau = result.get("untie_step")
  if tau:
    label = f"untied after step {tau}"
    axes.axvline(tau, color="black", linestyle="--", linewidth=1, label=label)
  axes.set_xlabel("training step")
  axes.set_ylabel("masked LM loss (nats per token)")
  axes.set_title("BERT on docstrings" + (", shared then untied" if tau else ""))
  axes.legend()
  png = io.BytesIO()
  drawing.savefig(png, format="png")
  files.write_bytes(os.path.join(model_dir, "loss.png"), png.getvalue())


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo; a second call resumes it, or reports it if it is done.

  Args:
    output_dir: Directory for the corpus and the run.
    params_override: As for `swe train`.
  """
  files.check_output_dir(output_dir, "output_dir")
  check(params_override)
  console = rich_console.Console()
  start = time.monotonic()
  console.print("reading the docstrings of the installed packages ...")
  corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  arguments = {"corpus": list(corpus), "params_override": params_override}
  sweep = sweep_lib.Sweep(
    [
      sweep_lib.Run(
        name="model",
        function="swe_tf.demo:train",
        arguments=arguments,
        config={"params_override": params_override},
      )
    ],
    output_dir,
  )
  console.print("starting TensorFlow and Model Garden ...")
  with (
    launcher.workers(uses=(output_dir, params_override)) as workers,
    sweep.progress(
      console, lambda result: f"loss {result['validation_loss']:.3f}"
    ) as progress,
  ):
    failures = sweep.execute(workers, progress)
  for error in failures.values():
    raise error
  (result,) = sweep.results().values()
  directory = sweep.directory("model").path
  for line in (
    *(f"  {name:<30}{value:>10.4g}" for name, value in result.items()),
    f"loss curve     {directory}/loss.png",
    f"checkpoints    {directory}/ckpt-*",
    f"TensorBoard    tensorboard --logdir={directory}",
    f"done in {time.monotonic() - start:.0f} s; the full log is "
    f"{directory}/log.txt",
  ):
    console.print(line, soft_wrap=True)
