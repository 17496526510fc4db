r"""`swe sweep`: runs a study, or goes on with it.

    swe sweep STUDY.yaml --output_dir=DIR --dry_run
    swe sweep STUDY.yaml --output_dir=DIR --jobs=2 \
      --params_override=task.train_data.input_path=TEXT,...
    swe report --runs=DIR --output_dir=REPORT

docs/studies.md says what stands in the file. Called again, it skips what is
finished and goes on with what was interrupted.
"""

from collections.abc import Sequence

from absl import flags
from absl import logging
from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf import files
from swe_tf.study import plan
from swe_tf.study import progress as progress_lib
from swe_tf.study import sweep as sweep_lib


def define_flags() -> None:
  """Defines the flags of the command."""
  flags.DEFINE_string("output_dir", None, "Where the runs are.")
  flags.DEFINE_bool(
    "dry_run", False, "Print the runs and what they cost, and stop."
  )
  flags.DEFINE_integer(
    "jobs", 1, "Runs at a time; the processor's cores are divided."
  )
  flags.DEFINE_string(
    "params_override",
    "",
    "Changes every run: YAML or a=b,c=d as for swe train; for example where "
    "the data is.",
  )


def _plan_runs(study: plan.Study, console) -> list[sweep_lib.PlannedRun]:
  """Returns the runs with their configurations, all of them checked."""
  console.print(f"starting TensorFlow and checking {len(study.runs)} runs ...")
  from swe_tf.study import configs  # TensorFlow, some seconds.

  logging.set_verbosity(logging.ERROR)
  planned, seen = [], set()
  for run in study.runs:
    config = configs.make_config(study, run, flags.FLAGS.params_override)
    data = repr((config.task.train_data, config.task.validation_data))
    if data not in seen:
      configs.check_data(config)
      seen.add(data)
    planned.append(
      sweep_lib.PlannedRun(
        run=run,
        config=config.as_dict(),
        steps=config.trainer.train_steps,
        tokens=configs.tokens(config),
        flops=configs.training_flops(config),
      )
    )
  return planned


def _entropy(study: plan.Study) -> float:
  from swe_tf.study import configs

  return configs.unigram_entropy(
    configs.make_config(study, study.runs[0], flags.FLAGS.params_override)
  )


def _print_plan(sweep: sweep_lib.Sweep, jobs: int, console) -> None:
  """Prints every run, its state, and what is left to pay for."""
  table = rich_table.Table(title=f"{len(sweep.runs)} runs")
  for column in ("run", "state", "steps", "tokens", "FLOPs", "time"):
    table.add_column(
      column, justify="left" if column in ("run", "state") else "right"
    )
  finished = {run.name: sweep.result(run) for run in sweep.runs}
  done = [(run, finished[run.name]) for run in sweep.runs if finished[run.name]]
  speed = None
  if done:
    speed = sum(result["seconds"] for _, result in done) / sum(
      run.flops for run, _ in done
    )
  left_flops = 0.0
  for run in sweep.runs:
    result, step = finished[run.name], sweep.step(run)
    if result:
      state, seconds = "finished", result["seconds"]
    else:
      left = run.flops * (1 - step / run.steps)
      left_flops += left
      state = f"at step {step:,}" if step else "new"
      seconds = speed and speed * left
    table.add_row(
      run.name,
      state,
      f"{run.steps:,}",
      f"{run.tokens:,}",
      f"{run.flops:.2e}",
      progress_lib.show_time(seconds),
    )
  console.print(table)
  console.print(
    f"left: {left_flops:.2e} FLOPs, "
    + (
      f"{progress_lib.show_time(speed * left_flops / jobs)} with --jobs="
      f"{jobs}, as fast as the finished runs"
      if speed
      else "time unknown until a run has finished"
    )
  )


def _print_results(sweep: sweep_lib.Sweep, console) -> None:
  table = rich_table.Table()
  table.add_column("run")
  results = [(run, sweep.result(run)) for run in sweep.runs]
  names = next((r["metrics"] for _, r in results if r), {})
  for name in (*names, "seconds"):
    table.add_column(name, justify="right")
  for run, result in results:
    if result:
      table.add_row(
        run.name,
        *(f"{result['metrics'][name]:.4f}" for name in names),
        f"{result['seconds']:.0f}",
      )
  console.print(table)


def main(argv: Sequence[str]) -> int:
  """Runs the study.

  Returns:
    The exit status: 1 if a run failed.
  """
  values = flags.FLAGS
  if len(argv) != 2:
    raise errors.UsageError(
      f"swe sweep takes one study, a YAML file, got {len(argv) - 1}."
    )
  files.require(output_dir=values.output_dir)
  if values.jobs < 1:
    raise errors.UsageError(f"--jobs ({values.jobs}) must be at least 1.")
  console = rich_console.Console()
  study = plan.read_study(argv[1])
  sweep = sweep_lib.Sweep(
    study.experiment,
    study.metrics,
    _plan_runs(study, console),
    values.output_dir,
  )
  if values.dry_run:
    _print_plan(sweep, values.jobs, console)
    return 0
  entropy = _entropy(study)
  sweep.write_study(entropy)
  console.print(f"entropy of single tokens: {entropy:.4f} nats")
  try:
    with progress_lib.SweepProgress(console, sweep.runs) as progress:
      failures = sweep.execute(values.jobs, progress)
  except KeyboardInterrupt:
    console.print("interrupted; the same command goes on where it was")
    return 130
  sweep.write_results()
  _print_results(sweep, console)
  console.print(
    f"tables and figures: swe report --runs={values.output_dir} "
    "--output_dir=DIR",
    soft_wrap=True,
  )
  return int(bool(failures))
