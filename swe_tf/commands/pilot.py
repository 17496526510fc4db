r"""Finds out on your own data whether sharing would pay for a planned run.

    swe pilot --experiment=swe/bert_pretraining --config_file=... \
      --params_override=... --output_dir=DIR --hours=1 --jobs=1

The flags are those of `swe train`, plus a budget: --hours for all runs
together, or --steps for each. At that budget it trains the baseline, equal
initial weights, SWE, the recipe and a model with a quarter of the layers, at
three learning rates each, then on fresh seeds, which alone decide. The answer
is one of three: share, do not share, cannot tell. Re-run it after an
interruption to resume; `swe report` draws the curves.
"""

from collections.abc import Iterator, Mapping
from concurrent import futures
import dataclasses
import functools
import json
import math
import multiprocessing
from typing import Any

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import plugins
from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import statistics
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.studies import executors


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  output_dir: str = opt.flag("Directory for the runs and the answer.")
  hours: float | None = opt.flag("Time limit for all runs.", None, least=0)
  steps: int | None = opt.flag("Steps of each run.", None)
  seeds: int = opt.flag(
    "Number of fresh seeds; fixed once the pilot has begun.", 3, least=2
  )
  jobs: int = opt.jobs()
  dry_run: bool = opt.flag("Print the plan and stop.", False)

  def __post_init__(self):
    if (self.hours is None) == (self.steps is None):
      raise errors.UsageError("give either --hours or --steps.")


def _steps_in_time(options: Options, config: Any, say) -> int:
  """Times a step of the baseline; returns the steps of each run that fit."""
  from swe_tf.studies import pilot

  assert options.hours is not None
  planned = config.trainer.train_steps
  trial = pilot.make_study(options.experiment, config, planned, options.seeds)
  cores = executors.share_of_cores(0, options.jobs)
  # TensorFlow cannot be confined to the cores of a run once it has started.
  spawn = multiprocessing.get_context("spawn")
  pool = futures.ProcessPoolExecutor(1, spawn, plugins.load)
  with messages.during("timing a step of the baseline"), pool as process:
    timing = process.submit(
      pilot.time_step, options.experiment, trial.overrides, cores
    ).result()
  say(f"{timing['start']:.0f} s to start, {timing['step']:.3f} s per step")
  seconds, most = 3600 * options.hours, pilot.most_runs(trial)
  return pilot.fit(timing, seconds, most, options.jobs, planned)


def run(options: Options) -> int:
  """Runs the pilot; the exit status is 1 if a run failed."""
  files.check_output_dir(options.output_dir, "output_dir")
  options.check_files()
  path = files.as_path(options.output_dir) / "pilot.json"
  begun = files.read_object(path, missing_ok=True)
  # More seeds after a look at the result would make its interval wrong.
  for flag in ("steps", "seeds"):
    asked = getattr(options, flag)
    if begun and asked not in (None, begun[flag]):
      raise errors.UsageError(
        f"--{flag}={asked}: the pilot in {options.output_dir} was begun with "
        f"{begun[flag]}; use another --output_dir for a new pilot."
      )
  console = messages.console()
  say = functools.partial(console.print, soft_wrap=True)
  config = stock_options.read_config(options)
  from swe_tf.studies import experiments
  from swe_tf.studies import pilot
  from swe_tf.studies import sweep as sweep_lib
  from swe_tf.studies import tuning as tuning_lib

  if options.steps is not None:
    steps = options.steps
  elif begun:  # A resumed pilot keeps its steps.
    steps = int(begun["steps"])
  else:
    steps = _steps_in_time(options, config, say)
  study = pilot.make_study(options.experiment, config, steps, options.seeds)
  configs = dict(experiments.make_configs(study, has_data=not options.dry_run))
  tuning = study.tuning
  assert tuning is not None
  say(
    f"{', '.join(tuning.arms)}: {len(study.runs)} runs of {steps:,} steps "
    f"(planned: {config.trainer.train_steps:,}), then other seeds, at most "
    f"{pilot.most_runs(study)} runs, {pilot.flops(study, configs):.2e} FLOPs"
  )
  if options.dry_run:
    return 0
  plan = {"steps": steps, "seeds": options.seeds, "arms": list(tuning.arms)}
  # Refuses another pilot's runs before anything of it is overwritten.
  sweep_lib.make_runs(study, configs, options.output_dir)
  files.write_json(path, begun | plan)
  _, failures = sweep_lib.run_study(
    study, configs, options.output_dir, executors.Local(options.jobs), console
  )
  records = outcome_lib.read_records(options.output_dir)
  losses = {
    tuning_lib.Point(run.arm, run.learning_rate, run.seed): run.final_loss
    for run in records
  }
  outcomes = outcome_lib.compare(records, controls=tuning.controls)
  if pilot.BASELINE not in outcomes:
    raise errors.Failed(
      "no baseline run has finished, so there is nothing to compare with; see "
      f"{options.output_dir}/*/log.txt."
    )
  at_edge = [
    arm for arm in outcomes if tuning_lib.is_at_edge(tuning, losses, arm)
  ]
  verdict = outcome_lib.judge(outcomes, pilot.sharing_arms(study))
  say("each arm at its best rate; means (95% intervals) over fresh seeds:")
  best = outcome_lib.at_best_rates(records)
  for arm, outcome in outcomes.items():
    run = next(iter(best[arm].values()))
    say(
      f"{_describe(outcome, arm in at_edge)}; {run.steps:,} steps, "
      f"{run.flops:.2e} FLOPs, {run.seconds:.0f} s a run"
    )
  say(f"verdict: [bold]{verdict.word}[/bold]")
  say(verdict.reason)
  shallow = next(iter(tuning.kept), "")
  study_json = files.read_json(path.with_name("study.json"))
  ends = [outcomes[a].loss for a in ("baseline", verdict.arm) if a in outcomes]
  if statistics.too_short(study_json["unigram_entropy"], *ends):
    say(statistics.TOO_SHORT)
  for note in _notes(outcomes, at_edge, verdict, shallow):
    say(note)
  result = {
    "verdict": verdict.word,
    "reason": verdict.reason,
    "dropped": tuning_lib.dropped(tuning, losses),
    "outcomes": {a: dataclasses.asdict(o) for a, o in outcomes.items()},
  }
  # JSON has no number for a loss that diverged.
  finite = json.loads(json.dumps(plan | result), parse_constant=lambda _: None)
  files.write_json(path, finite)
  report = f"{options.output_dir.rstrip('/')}_report"
  messages.say_next("swe report", runs=options.output_dir, output_dir=report)
  return int(bool(failures))


def _describe(outcome: outcome_lib.Outcome, is_at_edge: bool) -> str:
  """Returns a line on an arm at its best rate: means (95% intervals)."""
  edge = " (edge)" if is_at_edge else ""
  loss = f"final loss {outcome.loss.mean:.4f}" if outcome.loss else "dropped"
  parts = [f"peak {outcome.learning_rate:.3g}{edge}", loss]
  apart, at_equal = outcome.difference, outcome.at_equal_flops
  if outcome.arm != "baseline" and apart:
    parts.append(f"{apart} from the baseline ({apart.word()})")
  if not math.isnan(outcome.flops):
    parts.append(f"{outcome.flops:.2f} of its FLOPs")
  if outcome.control != "baseline" and at_equal:
    parts.append(f"{at_equal} from {outcome.control} ({at_equal.word()})")
  return f"{outcome.arm}: {', '.join(parts)}"


def _notes(
  outcomes: Mapping[str, outcome_lib.Outcome],
  at_edge: list[str],
  verdict: outcome_lib.Verdict,
  shallow: str,
) -> Iterator[str]:
  """Yields the caveats to print below the verdict."""
  few = outcomes.get(shallow)
  if few and few.difference and few.difference.low <= 0:
    yield (
      f"A {few.arm.removeprefix('layers')}-layer model would do for this "
      f"budget: it ends {few.difference} from the baseline with "
      f"{few.flops:.2f} of its FLOPs. Depth pays in longer runs, if at all."
    )
  edges = [arm for arm in ("baseline", verdict.arm) if arm in at_edge]
  if edges:
    yield (
      f"The best learning rate of {' and of '.join(edges)} is at the edge of "
      "the range tried: choose another peak for the plan and run the pilot "
      "again."
    )
