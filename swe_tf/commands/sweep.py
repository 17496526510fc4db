r"""Runs or resumes a study.

    swe sweep STUDY.yaml --output_dir=DIR --dry_run
    swe sweep STUDY.yaml --output_dir=DIR --jobs=2 \
      --params_override=task.train_data.input_path=TEXT,...
    swe report --runs=DIR --output_dir=REPORT

docs/studies.md explains the file. Re-run it to resume: finished runs are
skipped, and interrupted ones continue. With --ray_address the runs are spread
over a Ray cluster, whose machines must all see DIR and the data. For any other
scheduler, --print_commands prints a `swe train` line for each run; when they
are done, call `swe sweep` again to collect the results.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import shlex
from typing import Any

from absl import logging
from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf.commands import options as options_lib
from swe_tf.studies import executors
from swe_tf.studies import progress
from swe_tf.studies import study_file


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  study: str = options_lib.argument("The study, a YAML file.")
  output_dir: str = options_lib.flag("Directory for the runs.")
  dry_run: bool = options_lib.flag(
    "Print the runs and their cost, and stop.", False
  )
  print_commands: bool = options_lib.flag(
    "Write the config of each unfinished run, print the command that trains "
    "it, and stop.",
    False,
  )
  jobs: int = options_lib.flag(
    "Number of parallel runs; they split the CPU cores.", 1, lower_bound=1
  )
  ray_address: str = options_lib.flag(
    "HOST:PORT of a Ray cluster; --jobs then counts the runs of each machine.",
    "",
  )
  params_override: str = options_lib.flag(
    "Overrides for every run, as for swe train: YAML or a=b,c=d; for example, "
    "where the data is.",
    "",
  )

  def __post_init__(self):
    if self.dry_run + self.print_commands + bool(self.ray_address) > 1:
      raise errors.UsageError(
        "give only one of --dry_run, --print_commands and --ray_address."
      )


def _print_plan(runs: Sequence[executors.SweepRun], jobs: int, console) -> None:
  """Prints every run, its state, and the cost of what is left."""
  from swe_tf.configs import cost

  table = rich_table.Table(title=f"{len(runs)} runs")
  for column in ("run", "state", "steps", "tokens", "FLOPs", "time"):
    table.add_column(
      column, justify="left" if column in ("run", "state") else "right"
    )
  results = executors.results_of(runs)
  done = sum(run.cost for run in runs if run.name in results)
  seconds = sum(result["seconds"] for result in results.values())
  speed = seconds / done if done else None
  left = 0.0
  for run in runs:
    steps = run.config.trainer.train_steps
    if run.name in results:
      state, time = "finished", results[run.name]["seconds"]
    else:
      step = run.directory.read_progress()["step"]
      rest = run.cost * (1 - step / steps)
      left += rest
      state = f"at step {step:,}" if step else "new"
      time = speed and speed * rest
    table.add_row(
      run.name,
      state,
      f"{steps:,}",
      f"{cost.tokens(run.config):,}",
      f"{run.cost:.2e}",
      progress.show_time(time),
    )
  console.print(table)
  time_left = "time unknown until a run has finished"
  if speed:
    time_left = (
      f"{progress.show_time(speed * left / jobs)} with --jobs={jobs}, at the "
      "speed of the finished runs"
    )
  console.print(f"left: {left:.2e} FLOPs, {time_left}")


def _print_results(results: Mapping[str, Mapping[str, Any]], console) -> None:
  table = rich_table.Table()
  table.add_column("run")
  names = list(next(iter(results.values()), {}).get("metrics", ()))
  for name in (*names, "seconds"):
    table.add_column(name, justify="right")
  for name, result in results.items():
    values = [f"{result['metrics'][metric]:.4f}" for metric in names]
    table.add_row(name, *values, f"{result['seconds']:.0f}")
  console.print(table)


def _command(run: executors.SweepRun) -> str:
  """Returns the command line that trains a run, for any scheduler."""
  flags = {
    "experiment": run.about["experiment"],
    "mode": "train_and_eval",
    "model_dir": run.directory.path,
    "config_file": run.directory.config_file,
  }
  words = [f"--{name}={value}" for name, value in flags.items()]
  return shlex.join(["swe", "train", *words])


def run(options: Options) -> int:
  """Runs the study; the exit status is 1 if a run failed."""
  console = rich_console.Console()
  study = study_file.read_study(library.find(options.study))
  if study.tuning is not None and options.print_commands:
    raise errors.UsageError(
      "--print_commands: which runs a study with `tuning` needs depends on the "
      "results; use --ray_address."
    )
  files.check_output_dir(options.output_dir, "output_dir")
  logging.set_verbosity(logging.ERROR)
  if not options.print_commands:
    console.print(
      f"starting TensorFlow and checking {len(study.runs)} runs ..."
    )
  from swe_tf.studies import experiments
  from swe_tf.studies import sweep as sweep_lib

  sweep_lib.leave_gpus_to_runs()
  configs = experiments.make_configs(
    study, options.params_override, has_data=not options.dry_run
  )
  runs = sweep_lib.make_runs(study, configs, options.output_dir)
  if options.dry_run:
    _print_plan(runs, options.jobs, console)
    if study.tuning is not None:
      console.print("the results of these decide which runs follow")
    return 0
  if options.print_commands:
    sweep_lib.write_study(study, options.output_dir)
    for each in runs:
      if each.directory.read_result() is None:
        each.begin()
        print(_command(each))
    return 0
  runs, failures = sweep_lib.run_study(
    study,
    configs,
    options.output_dir,
    executors.make(options.jobs, options.ray_address),
    console,
    options.params_override,
  )
  _print_results(executors.results_of(runs), console)
  console.print(
    f"tables and figures: swe report --runs={options.output_dir} "
    "--output_dir=DIR",
    soft_wrap=True,
  )
  return int(bool(failures))
