r"""Runs or resumes a study.

    swe sweep STUDY.yaml --output_dir=DIR --dry_run
    swe sweep STUDY.yaml --output_dir=DIR --jobs=2 \
      --params_override=task.train_data.input_path=TEXT,...
    swe report --runs=DIR --output_dir=REPORT

docs/studies.md explains the file. Re-run it to resume: finished runs are
skipped, and interrupted ones continue.
"""

from collections.abc import Mapping
import dataclasses
import os
from typing import Any

from absl import logging
from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.commands import early
from swe_tf.commands import options as options_lib
from swe_tf.studies import hparams
from swe_tf.studies import launcher
from swe_tf.studies import status
from swe_tf.studies import study_file
from swe_tf.studies import sweep as sweep_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  study: str = options_lib.argument("The study, a YAML file.")
  output_dir: str = options_lib.flag("Directory for the runs.")
  dry_run: bool = options_lib.flag(
    "Print the runs and their cost, and stop.", False
  )
  jobs: int = options_lib.flag(
    "Number of parallel runs; they split the CPU cores.", 1, lower_bound=1
  )
  shard: str = options_lib.flag(
    "i/n: only the runs k with k % n = i, so that n machines that share a "
    "directory split the study.",
    "",
  )
  params_override: str = options_lib.flag(
    "Overrides for every run, as for swe train: YAML or a=b,c=d; for example, "
    "where the data is.",
    "",
  )


def _summarize(result: Mapping[str, Any]) -> str:
  return ", ".join(
    f"{name} {value:.4f}" for name, value in result["metrics"].items()
  )


def _print_plan(
  sweep: sweep_lib.Sweep, tokens: Mapping[str, int], jobs: int, console
) -> None:
  """Prints every run, its state, and the cost of what is left."""
  table = rich_table.Table(title=f"{len(sweep.runs)} runs")
  for column in ("run", "state", "steps", "tokens", "FLOPs", "time"):
    table.add_column(
      column, justify="left" if column in ("run", "state") else "right"
    )
  results = sweep.results()
  done = sum(run.cost for run in sweep.runs if run.name in results)
  seconds = sum(result["seconds"] for result in results.values())
  speed = seconds / done if done else None
  left = 0.0
  for run in sweep.runs:
    assert run.config is not None  # Every run of a study has one.
    steps = run.config["trainer"]["train_steps"]
    if run.name in results:
      state, time = "finished", results[run.name]["seconds"]
    else:
      step = sweep.directory(run.name).read_progress()["step"]
      rest = run.cost * (1 - step / steps)
      left += rest
      state = f"at step {step:,}" if step else "new"
      time = speed and speed * rest
    table.add_row(
      run.name,
      state,
      f"{steps:,}",
      f"{tokens[run.name]:,}",
      f"{run.cost:.2e}",
      status.show_time(time),
    )
  console.print(table)
  time_left = "time unknown until a run has finished"
  if speed:
    time_left = (
      f"{status.show_time(speed * left / jobs)} with --jobs={jobs}, at the "
      "speed of the finished runs"
    )
  console.print(f"left: {left:.2e} FLOPs, {time_left}")


def _print_results(sweep: sweep_lib.Sweep, console) -> None:
  table = rich_table.Table()
  table.add_column("run")
  results = sweep.results()
  names = list(next(iter(results.values()), {}).get("metrics", ()))
  for name in (*names, "seconds"):
    table.add_column(name, justify="right")
  for name, result in results.items():
    values = [f"{result['metrics'][metric]:.4f}" for metric in names]
    table.add_row(name, *values, f"{result['seconds']:.0f}")
  console.print(table)


def _write_study(
  study: study_file.Study, entropy: float | None, output_dir: str
) -> None:
  """Writes `study.json` and the hyper-parameters of all runs known so far."""
  files.write_json(
    os.path.join(output_dir, "study.json"),
    {
      "experiment": study.experiment,
      "metrics": list(study.metrics),
      "unigram_entropy": entropy,
      "runs": {run.name: dict(run.point) for run in study.runs},
    },
  )
  hparams.write_study(output_dir, study)


def run(options: Options) -> int:
  """Runs the study; the exit status is 1 if a run failed."""
  console = rich_console.Console()
  shard = sweep_lib.parse_shard(options.shard)
  study = study_file.read_study(library.find(options.study))
  if study.tuning is not None and options.shard:
    raise errors.UsageError(
      f"--shard={options.shard}: the runs of a tuning study depend on each "
      "other's results; split it into several studies."
    )
  files.check_output_dir(options.output_dir, "output_dir")
  console.print(f"starting TensorFlow and checking {len(study.runs)} runs ...")
  from swe_tf.configs import cost
  from swe_tf.studies import experiments

  logging.set_verbosity(logging.ERROR)
  configs = dict(experiments.make_configs(study, options.params_override))
  needed = () if options.dry_run else ("train_data", "validation_data")
  for config in configs.values():
    early.check_data(config.as_dict(), *needed)
  if options.dry_run:
    tokens = {name: cost.tokens(config) for name, config in configs.items()}
    sweep = _make_sweep(study, configs, options.output_dir, shard)
    _print_plan(sweep, tokens, options.jobs, console)
    if study.tuning is not None:
      console.print("the results of these decide which runs follow")
    return 0
  failed = run_study(
    study,
    configs,
    options.output_dir,
    options.jobs,
    console,
    shard,
    options.params_override,
  )
  console.print(
    f"tables and figures: swe report --runs={options.output_dir} "
    "--output_dir=DIR",
    soft_wrap=True,
  )
  return int(failed)


def _make_sweep(
  study: study_file.Study,
  configs: Mapping[str, Any],
  output_dir: str,
  shard: tuple[int, int] = (0, 1),
) -> sweep_lib.Sweep:
  from swe_tf.studies import experiments

  return sweep_lib.Sweep(
    experiments.make_runs(study, configs),
    output_dir,
    shard,
    lambda path: experiments.read_config(study.experiment, path).as_dict(),
  )


def run_study(
  study: study_file.Study,
  configs: Mapping[str, Any],
  output_dir: str,
  jobs: int,
  console: rich_console.Console,
  shard: tuple[int, int] = (0, 1),
  params_override: str = "",
) -> bool:
  """Executes a study's unfinished runs, and those that a tuning adds.

  Args:
    study: The study.
    configs: The configs of its runs so far, by name.
    output_dir: The directory for the runs.
    jobs: How many runs to execute at a time.
    console: Where progress and results are shown.
    shard: Which runs to execute; see `Sweep`.
    params_override: Overrides for every run that is added.

  Returns:
    Whether a run failed.
  """
  from swe_tf.studies import experiments

  configs = dict(configs)
  entropy = experiments.unigram_entropy(configs[study.runs[0].name])
  if entropy is not None:
    console.print(f"entropy of single tokens: {entropy:.4f} nats")
  failures: dict[str, Exception] = {}
  asked: set[str] = set()
  sweep = _make_sweep(study, configs, output_dir, shard)
  uses = [output_dir, *(config.as_dict() for config in configs.values())]
  with launcher.workers(jobs, uses=uses) as workers:
    more: study_file.Study | None = study
    while more is not None:
      study = more
      for each in study.runs:
        if each.name not in configs:
          configs[each.name] = experiments.make_config(
            study, each, params_override
          )
      sweep = _make_sweep(study, configs, output_dir, shard)
      _write_study(study, entropy, output_dir)
      rest = _make_sweep(study.without_runs(asked), configs, output_dir, shard)
      with rest.progress(console, _summarize) as shown:
        failures |= rest.execute(workers, shown)
      asked |= {run.name for run in study.runs}
      more = study.with_next_runs(experiments.losses_of(sweep, study, failures))
  sweep.write_results(failures)
  _print_results(sweep, console)
  return bool(failures)
