r"""Runs or resumes a study.

    swe sweep STUDY.yaml --output_dir=DIR --dry_run
    swe sweep STUDY.yaml --output_dir=DIR --jobs=2 \
      --params_override=task.train_data.input_path=TEXT,...
    swe report --runs=DIR --output_dir=REPORT

docs/studies.md explains the file. Re-run it to resume. With --ray_address the
runs are spread over a Ray cluster, whose machines must all see DIR and the
data. For any other scheduler, --print_commands prints a `swe train` line for
each run; when they are done, call `swe sweep` again to collect the results.
"""

from collections.abc import Sequence
import dataclasses
import math
import os
import shlex

from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf import files
from swe_tf import library
from swe_tf import messages
from swe_tf import plugins
from swe_tf.commands import options as opt
from swe_tf.studies import executors
from swe_tf.studies import study_file


@dataclasses.dataclass(frozen=True)
class Options(opt.ManyRuns):
  study: str = opt.argument("The study, a YAML file.")
  dry_run: bool = opt.flag("Print the runs and their cost, and stop.", False)
  print_commands: bool = opt.flag(
    "Print the command that trains each unfinished run, and stop.", False
  )

  def __post_init__(self):
    if self.dry_run + self.print_commands + bool(self.ray_address) > 1:
      raise errors.UsageError(
        "give only one of --dry_run, --print_commands and --ray_address."
      )


def _print_plan(runs: Sequence[executors.SweepRun], console) -> None:
  """Prints every run, its state, and the cost of what is left."""
  from swe_tf.configs import cost

  table = rich_table.Table("run", "state", title=f"{len(runs)} runs")
  for column in ("steps", "tokens", "FLOPs"):
    table.add_column(column, justify="right")
  left = 0.0
  results = executors.results_of(runs)
  for run in runs:
    steps = run.config.trainer.train_steps
    step = run.directory.read_progress()["step"]
    state = f"at step {step:,}" if step else "new"
    if run.name in results:
      step, state = steps, "finished"
    left += run.cost * (1 - step / steps)
    numbers = f"{steps:,}", f"{cost.tokens(run.config):,}", _flops(run)
    table.add_row(run.name, state, *numbers)
  console.print(table)
  if all(run.cost > 1 for run in runs):
    console.print(f"left: {left:.2e} FLOPs")


def _flops(run: executors.SweepRun) -> str:
  # Without a formula, as for GLUE, the cost of a run is 1.
  return f"{run.cost:.2e}" if run.cost > 1 else "?"


def run(options: Options) -> int:
  """Runs the study; the exit status is 1 if a run failed."""
  console = rich_console.Console()
  # What is printed may be only the commands.
  told = rich_console.Console(stderr=options.print_commands)
  # Looking up a method imports TensorFlow.
  with messages.during("reading the study", told, announce=False):
    study = study_file.read_study(library.find(options.study))
  if study.tuning is not None and options.print_commands:
    raise errors.UsageError(
      "--print_commands: which runs a study with `tuning` needs depends on the "
      "results; use --ray_address."
    )
  files.check_output_dir(options.output_dir, "output_dir")
  many = f"{len(study.runs)} runs"
  with messages.during(f"starting TensorFlow and checking {many}", told):
    from swe_tf.studies import experiments
    from swe_tf.studies import sweep as sweep_lib

    sweep_lib.leave_gpus_to_runs()
    configs = experiments.make_configs(
      study, options.params_override, has_data=not options.dry_run
    )
  runs = sweep_lib.make_runs(study, configs, options.output_dir)
  if options.dry_run:
    _print_plan(runs, console)
    if study.tuning is not None:
      console.print("the results of these decide which runs follow")
    return 0
  if options.print_commands:
    sweep_lib.write_study(study, options.output_dir)
    for each in runs:
      if each.directory.read_result() is None:
        each.begin()
        flags = {
          "experiment": each.about["experiment"],
          "mode": "train_and_eval",
          "model_dir": each.directory.path,
          "config_file": each.directory.config_file,
        }
        if loaded := os.environ.get(plugins.VARIABLE):
          flags["plugins"] = loaded
        words = [f"--{name}={value}" for name, value in flags.items()]
        print(shlex.join(["swe", "train", *words]))
    return 0
  runs, failures = sweep_lib.run_study(
    study,
    configs,
    options.output_dir,
    executors.make(options.jobs, options.ray_address),
    console,
    options.params_override,
  )
  names = ("run", *study.metrics, "steps", "FLOPs", "seconds")
  columns = (rich_table.Column(name, overflow="fold") for name in names)
  table = rich_table.Table(*columns)
  results = executors.results_of(runs)
  for run in runs:
    if (result := results.get(run.name)) is None:
      continue  # It failed.
    values = [
      f"{result['metrics'].get(metric, math.nan):.4f}"
      for metric in study.metrics
    ]
    spent = f"{result['steps']:,}", _flops(run), f"{result['seconds']:.0f}"
    table.add_row(run.name, *values, *spent)
  console.print(table)
  diverged = [r for r in results.values() if r.get("status") == "diverged"]
  if diverged:
    console.print(f"{len(diverged)} of {len(runs)} runs diverged")
  report = f"{options.output_dir.rstrip('/')}_report"
  messages.say_next("swe report", runs=options.output_dir, output_dir=report)
  return int(bool(failures))
