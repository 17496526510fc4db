"""Executes the runs of a study: sweeps, pilots, fine-tuning, the demo.

    DIR/study.json   what the study is, and its runs so far
    DIR/NAME/...     a run; see `worker`

A study may be stopped at any time, by any means, and called again: runs that
have a `result.json` are not repeated, and interrupted ones resume from their
checkpoints.
"""

from collections.abc import Mapping
import contextlib
import math
import os
from typing import Any

from rich import console as rich_console
import tensorflow as tf

from swe_tf import errors
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.configs import cost
from swe_tf.configs import experiment as experiment_lib
from swe_tf.methods import catalog
from swe_tf.studies import executors
from swe_tf.studies import experiments
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
) -> list[executors.SweepRun]:
  """Returns the runs of a study in their directories; writes nothing.

  Refuses a directory that holds a run of the same name and another config.
  """
  if not files.is_url(output_dir):  # A cluster has other working directories.
    output_dir = os.path.abspath(output_dir)
  made = []
  for run in study.runs:
    config = configs[run.name]
    directory = worker.RunDirectory(files.as_path(output_dir) / run.name)
    if directory.config_file.exists():
      saved = yaml_files.read(directory.config_file)
      earlier = experiments.get(study.experiment, saved)
      worker.refuse_other(directory.path, earlier.as_dict(), config.as_dict())
    method, flops = "", 1.0  # There is no formula for GLUE, for example.
    if isinstance(config, experiment_lib.SharingExperimentConfig):
      method = catalog.find(catalog.resolve(config)).name
      with contextlib.suppress(errors.UsageError):
        flops = float(cost.training_flops(config))
    made.append(
      executors.SweepRun(
        name=run.name,
        directory=directory,
        config=config,
        about={
          "name": run.name,
          "experiment": study.experiment,
          "method": method,
          "axes": dict(run.point),
          "metrics": list(study.metrics),
        },
        function=function,
        cost=flops,
      )
    )
  return made


def write_study(
  study: study_file.Study, output_dir: files.PathLike, **more: Any
) -> None:
  """Writes `study.json`: the study, and `more` about it."""
  points = {run.name: dict(run.point) for run in study.runs}
  content: dict[str, Any] = {"experiment": study.experiment, "runs": points}
  content |= {"metrics": list(study.metrics), **more}
  files.write_json(files.as_path(output_dir) / "study.json", content)


def _summarize(result: Mapping[str, Any]) -> str:
  if result.get("status") == "diverged":
    return f"diverged: {result['reason']}"
  metrics = result["metrics"].items()
  return ", ".join(f"{name} {value:.4f}" for name, value in metrics)


def run_study(
  study: study_file.Study,
  configs: experiments.Configs,
  output_dir: files.PathLike,
  executor: executors.Executor,
  console: rich_console.Console,
  params_override: str = "",
) -> tuple[list[executors.SweepRun], dict[str, str]]:
  """Executes a study's unfinished runs, and those that a tuning adds.

  `params_override` is for the runs that are added. Returns all runs, and why
  some failed, by name.
  """
  runs = make_runs(study, configs, output_dir)
  entropy = experiments.unigram_entropy(runs[0].config)
  if entropy is not None:
    console.print(f"entropy of single tokens: {entropy:.4f} nats")
  failures: dict[str, str] = {}
  new = runs
  while new:
    write_study(study, output_dir, unigram_entropy=entropy)
    failures |= executors.execute(new, executor, console, _summarize)
    losses = dict.fromkeys(failures, math.inf)
    for name, result in executors.results_of(runs).items():
      loss = result["metrics"].get(study.metrics[0], math.inf)
      losses[name] = loss if math.isfinite(loss) else math.inf
    more = study.with_next_runs(losses)
    if more is None:
      break
    added = more.without_runs({run.name for run in runs})
    study, configs = more, experiments.make_configs(added, params_override)
    new = make_runs(added, configs, output_dir)
    runs = [*runs, *new]
  return runs, failures
