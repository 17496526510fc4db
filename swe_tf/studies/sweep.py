"""Executes the runs of a study: sweeps, pilots, fine-tuning, the demo.

    DIR/study.json   what the study is, and its runs so far
    DIR/NAME/...     a run; see `directory`

A study may be stopped at any time, by any means, and called again: runs that
have a `result.json` are not repeated, and interrupted ones resume from their
checkpoints.
"""

from collections.abc import Container, Mapping, Sequence
import contextlib
import math
import os
from typing import Any

from rich import console as rich_console
import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import files
from swe_tf.configs import cost
from swe_tf.configs import experiment as experiment_lib
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import execution
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import hparams
from swe_tf.studies import study_file
from swe_tf.studies import worker

TRAIN = "swe_tf.studies.jobs:train"


def leave_gpus_to_runs() -> None:
  """Keeps this process, which only checks the runs, off the GPUs' memory."""
  with contextlib.suppress(RuntimeError):  # TensorFlow is in use already.
    tf.config.set_visible_devices([], "GPU")


def make_runs(
  study: study_file.Study,
  configs: experiments.Configs,
  output_dir: files.PathLike,
  function: str = TRAIN,
) -> list[execution.Run]:
  """Returns the runs of a study in their directories; writes nothing.

  Args:
    study: The study.
    configs: The experiments of its runs, by name.
    output_dir: The directory of the study. It may hold runs with the same
      configs.
    function: What trains a run; see `worker.Call`.

  Raises:
    UsageError: If a run in the directory has another config.
  """
  if not files.is_url(output_dir):  # A cluster has other working directories.
    output_dir = os.path.abspath(output_dir)
  made = []
  for run in study.runs:
    config = configs[run.name]
    path = files.as_path(output_dir) / run.name
    directory = directory_lib.RunDirectory(path)
    if directory.config_file.exists():
      earlier = experiments.read_config(study.experiment, directory.config_file)
      directory_lib.refuse_other(path, earlier.as_dict(), config.as_dict())
    about = {
      "name": run.name,
      "experiment": study.experiment,
      "method": experiments.method_of(config),
      "axes": dict(run.point),
      "metrics": list(study.metrics),
    }
    runtime = config.runtime
    call = worker.Call(
      function=function,
      directory=str(path),
      num_gpus=runtime.num_gpus,
      uses_tpu=runtime.distribution_strategy == "tpu",
    )
    made.append(
      execution.Run(
        name=run.name,
        directory=directory,
        config=config,
        about=about,
        call=call,
        cost=_cost(config),
      )
    )
  return made


def _cost(config: cfg.ExperimentConfig) -> float:
  """Returns the FLOPs of a run; 1 where there is no formula, as for GLUE."""
  if isinstance(config, experiment_lib.SharingExperimentConfig):
    with contextlib.suppress(errors.UsageError):
      return float(cost.training_flops(config))
  return 1.0


def losses_of(
  runs: Sequence[execution.Run], metric: str, failures: Container[str] = ()
) -> dict[str, float]:
  """Returns the final losses so far by run; infinity for a failed run."""
  losses = {run.name: math.inf for run in runs if run.name in failures}
  for name, result in execution.results_of(runs).items():
    loss = result["metrics"][metric]
    losses[name] = loss if math.isfinite(loss) else math.inf
  return losses


def write_study(
  study: study_file.Study, output_dir: files.PathLike, **more: Any
) -> None:
  """Writes `study.json`, and the axes of all runs so far for TensorBoard."""
  content = {
    "experiment": study.experiment,
    "metrics": list(study.metrics),
    "runs": {run.name: dict(run.point) for run in study.runs},
  }
  path = files.as_path(output_dir) / "study.json"
  files.write_json(path, content | more)
  hparams.write_study(output_dir, study)


def summarize(result: Mapping[str, Any]) -> str:
  """Summarizes the result of a run of pre-training."""
  return ", ".join(
    f"{name} {value:.4f}" for name, value in result["metrics"].items()
  )


def run_study(
  study: study_file.Study,
  configs: experiments.Configs,
  output_dir: files.PathLike,
  executor: executors.Executor,
  console: rich_console.Console,
  params_override: str = "",
  function: str = TRAIN,
) -> tuple[list[execution.Run], dict[str, str]]:
  """Executes a study's unfinished runs, and those that a tuning adds.

  Args:
    study: The study.
    configs: The experiments of its runs so far, by name.
    output_dir: The directory for the runs.
    executor: Where they are executed.
    console: Where progress and results are shown.
    params_override: Overrides for every run that is added.
    function: What trains a run; see `worker.Call`.

  Returns:
    All runs, and why some failed, by name.
  """
  runs = make_runs(study, configs, output_dir, function)
  entropy = experiments.unigram_entropy(runs[0].config)
  if entropy is not None:
    console.print(f"entropy of single tokens: {entropy:.4f} nats")
  failures: dict[str, str] = {}
  new = runs
  while new:
    write_study(study, output_dir, unigram_entropy=entropy)
    failures |= execution.execute(new, executor, console, summarize)
    losses = losses_of(runs, study.metrics[0], failures)
    more = study.with_next_runs(losses)
    if more is None:
      break
    added = more.without_runs({run.name for run in runs})
    study, configs = more, experiments.make_configs(added, params_override)
    new = make_runs(added, configs, output_dir, function)
    runs = [*runs, *new]
  return runs, failures
