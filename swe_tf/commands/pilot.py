r"""Finds out on your own data whether sharing would pay for a planned run.

    swe pilot --experiment=swe/bert_pretraining --config_file=... \
      --params_override=... --output_dir=DIR --hours=1 --jobs=1

The flags are those of `swe train`, plus a budget: --hours for all runs
together, or --steps for each. It trains the baseline, equal initial weights,
SWE, the recipe and a model with a quarter of the layers at that reduced budget,
with fully decayed schedules. Each gets the same three learning rates, and fresh
seeds where it is close; these alone decide, and their number is fixed when the
pilot begins. A method with cheaper steps is compared with a baseline of as few
FLOPs. The answer is one of three: share, do not share, cannot tell. Re-run it
after an interruption to resume.
"""

from collections.abc import Mapping
from concurrent import futures
import dataclasses
import io
import math
import multiprocessing
from typing import Any

from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf import files
from swe_tf import plugins
from swe_tf.analysis import outcome as outcome_lib
from swe_tf.commands import doctor
from swe_tf.commands import early
from swe_tf.commands import options as options_lib
from swe_tf.commands import stock_options
from swe_tf.studies import executors


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The flags of `swe train`, and the budget."""

  output_dir: str = options_lib.flag("Directory for the runs and the answer.")
  hours: float | None = options_lib.flag(
    "Time limit for all runs together.", None, lower_bound=0
  )
  steps: int | None = options_lib.flag("Steps of each run.", None)
  seeds: int = options_lib.flag(
    "Number of fresh seeds at the best learning rates; it cannot be changed "
    "once the pilot has begun.",
    3,
    lower_bound=2,
  )
  jobs: int = options_lib.flag(
    "Number of parallel runs; they split the CPU cores.", 1, lower_bound=1
  )
  dry_run: bool = options_lib.flag("Print the plan and stop.", False)

  def __post_init__(self):
    super().__post_init__()
    if (self.hours is None) == (self.steps is None):
      raise errors.UsageError("give either --hours or --steps.")


def _begun(options: Options) -> Mapping[str, Any]:
  """Returns what was fixed when the pilot in the directory began, if one did.

  Raises:
    UsageError: If the number of seeds was another one. Adding seeds after a
      look at the result would make its 95% worth less.
  """
  path = files.as_path(options.output_dir) / "pilot.json"
  begun = files.read_json(path) if path.exists() else {}
  if begun and begun["seeds"] != options.seeds:
    raise errors.UsageError(
      f"--seeds={options.seeds}: the pilot in {options.output_dir} was begun "
      f"with {begun['seeds']}, and more seeds after a look at the result would "
      "make its 95% interval wrong; use another --output_dir for a new pilot."
    )
  return begun


def _steps(options: Options, config: Any, console) -> int:
  """Returns the steps of each run that fit the budget."""
  if options.steps is not None:
    return options.steps
  from swe_tf.studies import pilot

  assert options.hours is not None
  begun = _begun(options)
  if begun:  # A resumed pilot keeps its steps.
    return int(begun["steps"])
  planned = config.trainer.train_steps
  trial = pilot.make_study(options.experiment, config, planned, options.seeds)
  console.print("timing a step of the baseline ...")
  cores = executors.share_of_cores(0, options.jobs)
  with futures.ProcessPoolExecutor(
    1,
    mp_context=multiprocessing.get_context("spawn"),
    initializer=plugins.load,
  ) as process:
    timing = process.submit(
      pilot.time_step, options.experiment, trial.overrides, cores
    ).result()
  console.print(
    f"{timing['start']:.0f} s to start, {timing['step']:.3f} s per step"
  )
  return pilot.fit(
    timing,
    3600 * options.hours,
    pilot.most_runs(trial),
    options.jobs,
    planned,
  )


def _print_outcomes(
  outcomes: Mapping[str, outcome_lib.Outcome],
  rates: Mapping[str, int],
  console,
) -> None:
  table = rich_table.Table(
    "arm",
    "peak",
    "final loss",
    "minus baseline",
    "",
    "FLOPs",
    "minus a baseline with as few",
    "",
    title="each arm at its best learning rate; mean (95% interval) over fresh "
    "seeds",
  )
  for arm, each in outcomes.items():
    edge = "" if rates[arm] == 0 else " (edge)"
    difference = None if arm == "baseline" else each.difference
    at_equal = each.at_equal_flops if each.control != "baseline" else None
    table.add_row(
      arm,
      f"{each.learning_rate:.3g}{edge}",
      f"{each.loss.mean:.4f}" if each.loss else "dropped",
      str(difference or ""),
      difference.word() if difference else "",
      "" if math.isnan(each.flops) else f"{each.flops:.2f}",
      f"{at_equal}, {each.control}" if at_equal else "",
      at_equal.word() if at_equal else "",
    )
  console.print(table)


def _draw(records, path: files.PathLike, word: str) -> None:
  """Draws the validation curves at the best rates, by steps and by FLOPs."""
  from matplotlib import figure

  drawing = figure.Figure(figsize=(11, 4.4), dpi=120, layout="constrained")
  by_steps, by_flops = drawing.subplots(1, 2, sharey=True)
  for index, (arm, runs) in enumerate(
    outcome_lib.at_best_rates(records).items()
  ):
    for number, run in enumerate(runs.values()):
      look = {"color": f"C{index}", "linewidth": 1.2}
      look |= {"label": arm} if not number else {}
      steps, losses = zip(*run.curve)
      by_steps.plot(steps, losses, **look)
      by_flops.plot([run.flops_until(s) for s in steps], losses, **look)
  for panel, label in ((by_steps, "step"), (by_flops, "FLOPs")):
    panel.set_xlabel(label)
    panel.grid(alpha=0.25)
  by_steps.set_ylabel("validation loss")
  by_steps.legend(fontsize=8)
  drawing.suptitle(f"pilot: {word}")
  png = io.BytesIO()
  drawing.savefig(png, format="png", metadata={"Software": None})
  files.write_bytes(path, png.getvalue())


def run(options: Options) -> int:
  """Runs the pilot; the exit status is 1 if a run failed."""
  files.check_output_dir(options.output_dir, "output_dir")
  early.check_plan(options)
  _begun(options)
  console = rich_console.Console()
  console.print("starting TensorFlow and reading the plan ...")
  from swe_tf.studies import experiments
  from swe_tf.studies import pilot
  from swe_tf.studies import sweep as sweep_lib
  from swe_tf.studies import tuning as tuning_lib

  config = doctor.read_config(options)
  steps = _steps(options, config, console)
  study = pilot.make_study(options.experiment, config, steps, options.seeds)
  configs = dict(experiments.make_configs(study, has_data=not options.dry_run))
  assert study.tuning is not None
  first, most = len(study.runs), pilot.most_runs(study)
  console.print(
    f"{', '.join(study.tuning.arms)}: {first} runs of {steps:,} steps "
    f"(planned: {config.trainer.train_steps:,}), then other seeds, at most "
    f"{most} runs, {pilot.flops(study, configs):.2e} FLOPs",
    soft_wrap=True,
  )
  if options.dry_run:
    return 0
  files.write_json(
    files.as_path(options.output_dir) / "pilot.json",
    {
      "steps": steps,
      "seeds": options.seeds,
      "arms": list(study.tuning.arms),
    },
  )
  _, failures = sweep_lib.run_study(
    study,
    configs,
    options.output_dir,
    executors.Local(options.jobs),
    console,
  )
  records = outcome_lib.read_records(options.output_dir)
  losses = {
    tuning_lib.Point(run.arm, run.learning_rate, run.seed): run.final_loss
    for run in records
  }
  outcomes = outcome_lib.compare(records, controls=study.tuning.controls)
  if pilot.BASELINE not in outcomes:
    raise errors.Failed(
      "no baseline run has finished, so there is nothing to compare with; see "
      f"{options.output_dir}/*/log.txt."
    )
  edges = {
    arm: int(tuning_lib.is_at_edge(study.tuning, losses, arm))
    for arm in outcomes
  }
  verdict = outcome_lib.judge(outcomes, pilot.sharing_arms(study))
  _print_outcomes(outcomes, edges, console)
  picture = files.as_path(options.output_dir) / "pilot.png"
  _draw(records, picture, verdict.word)
  console.print(f"verdict: [bold]{verdict.word}[/bold]", highlight=False)
  console.print(verdict.reason, soft_wrap=True, highlight=False)
  for note in _notes(outcomes, edges, verdict, pilot.shallow_arm(config)):
    console.print(note, soft_wrap=True, highlight=False)
  console.print(f"curves: {picture}", soft_wrap=True)
  files.write_json(
    files.as_path(options.output_dir) / "pilot.json",
    _finite(
      {
        "steps": steps,
        "seeds": options.seeds,
        "arms": list(study.tuning.arms),
        "verdict": verdict.word,
        "reason": verdict.reason,
        "dropped": tuning_lib.dropped(study.tuning, losses),
        "outcomes": {a: dataclasses.asdict(o) for a, o in outcomes.items()},
      }
    ),
  )
  return int(bool(failures))


def _finite(value: Any) -> Any:
  """Replaces what JSON does not have, such as a loss that diverged, by None."""
  if isinstance(value, Mapping):
    return {name: _finite(each) for name, each in value.items()}
  if isinstance(value, (list, tuple)):
    return [_finite(each) for each in value]
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value


def _notes(
  outcomes: Mapping[str, outcome_lib.Outcome],
  edges: Mapping[str, int],
  verdict: outcome_lib.Verdict,
  shallow: str | None,
) -> list[str]:
  """Returns the caveats to print below the verdict."""
  notes = []
  chosen, control = outcomes.get(verdict.arm), outcomes.get("equal_init")
  if shallow is not None and shallow in outcomes:
    few = outcomes[shallow]
    if few.difference is not None and few.difference.low <= 0:
      notes.append(
        f"A {shallow.removeprefix('layers')}-layer model would do for this "
        f"budget: it ends {few.difference} from the baseline with "
        f"{few.flops:.2f} of its FLOPs. Depth pays only in longer runs, if at "
        "all."
      )
  if (
    verdict.word == outcome_lib.SHARE
    and chosen is not None
    and chosen.loss is not None
    and control is not None
    and control.loss is not None
    and control.loss.mean <= chosen.loss.mean + _TIE
  ):
    notes.append(
      "Equal initial weights, never tied, do as well: what helps here is the "
      "start, not the sharing."
    )
  at_edge = [arm for arm in ("baseline", verdict.arm) if edges.get(arm)]
  if at_edge:
    notes.append(
      f"The best learning rate of {' and of '.join(at_edge)} is at the edge of "
      "the range tried: choose another peak for the plan and run the pilot "
      "again."
    )
  if chosen is not None and not math.isnan(chosen.flops) and chosen.flops < 1:
    notes.append(
      f"{verdict.arm} takes {chosen.flops:.2f} of the baseline's FLOPs."
    )
  return notes


_TIE = 1e-3
