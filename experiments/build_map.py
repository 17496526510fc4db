"""The map: when sharing pays, from the runs of its regimes.

    python -m experiments.build_map collect REGIME RUNS...   # after a sweep
    python -m experiments.build_map                          # rebuilds the rest

`collect` writes docs/results/map/REGIME.json from the directories of sweeps:
all runs with their curves. Without arguments, docs/results/map.json (one row
per run), the figure and the tables of docs/map.md are rebuilt from these files.
"""

import math
import pathlib
import sys
import textwrap
from typing import Any

from experiments import draw_map
from experiments import map_measures as measures
from swe_tf import files
from swe_tf.analysis import statistics
from swe_tf.studies import outcome as outcome_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "map.md"
_BEGIN, _END = "<!-- map: begin -->\n", "<!-- map: end -->\n"
# Arm names in a study that is older than the map.
_RENAMED = {"stacking3": "stacking"}

TITLES = {
  "text": "characters, 1,024 tokens a step",
  "small_batch": "characters, 256 tokens a step",
  "causal": "causal language model",
  "post_ln": "Post-LN, 24 layers",
  "pointers": "pointer chasing",
  "deep": "48 layers",
  "short_data": "20 epochs of 15 kB",
  "long": "8 times the tokens",
  "low_rate": "rates far below the best",
}
# These ask what happens at given rates, so no rate is the best.
UNTUNED = ("low_rate",)
# Stopped regimes, with the reason; their arms are not judged.
STOPPED = {
  "post_ln": "after 600 steps every arm but one was still at the entropy of "
  "single tokens (3.02), where the rule drops nothing and no rate is the best. "
  "The exception is `stacking`: 6 layers first, then 24, got to 2.881 in as "
  "many steps. Two more runs were under way then; they have no result and are "
  "in no file."
}
# More seeds and arms of a regime, in separate files.
MORE_SEEDS = {
  "text": (
    "text_seeds",
    "text_tau",
    "text_tau70",
    "text_shallow",
    "text_probes",
  ),
  "small_batch": ("small_batch_short",),
}


def collect(regime: str, *sources: str) -> None:
  """Writes the runs of a regime to a JSON file.

  Args:
    regime: Its name.
    *sources: Directories of sweeps, or JSON files with results of runs whose
      directories are gone; these have no curves.
  """
  found: dict[Any, outcome_lib.Record] = {}
  results = []
  for source in sources:
    if source.endswith(".json"):
      results += files.read_json(source)
      continue
    for record in outcome_lib.read_records(source):
      record = _renamed(record)
      found[record.point] = record
  for result in results:
    record = _without_curve(result, list(found.values()))
    found.setdefault(record.point, record)
  files.write_json(
    RESULTS / "map" / f"{regime}.json",
    [found[point].as_table() for point in sorted(found)],
  )


def _renamed(record: outcome_lib.Record) -> outcome_lib.Record:
  table = record.as_table()
  table["arm"] = _RENAMED.get(record.arm, record.arm)
  return outcome_lib.from_table(table)


def _without_curve(result, known) -> outcome_lib.Record:
  """Returns the record of a result, with the phases of its arm's other runs."""
  axes = result["axes"]
  arm = _RENAMED.get(axes["arm"], axes["arm"])
  twin = next(record for record in known if record.arm == arm)
  return outcome_lib.Record(
    arm=arm,
    learning_rate=axes["learning_rate"],
    seed=axes["seed"],
    final_loss=result["metrics"]["validation_loss"],
    steps=result["steps"],
    phases=twin.phases,
    seconds=result["seconds"],
  )


def read_regimes() -> dict[str, list[outcome_lib.Record]]:
  """Returns all runs by regime, in the order of `TITLES`."""
  regimes = {name: _read(name) for name in TITLES}
  for name, others in MORE_SEEDS.items():
    for other in others:
      regimes[name] += _read(other)
  return {name: records for name, records in regimes.items() if records}


def _read(name: str) -> list[outcome_lib.Record]:
  path = RESULTS / "map" / f"{name}.json"
  tables = files.read_json(path) if path.exists() else []
  return [outcome_lib.from_table(table) for table in tables]


def rows_of(
  regime: str, records: list[outcome_lib.Record]
) -> list[dict[str, Any]]:
  """Returns the rows of a regime in map.json: all runs that were started."""
  best = outcome_lib.at_best_rates(records)
  base = best["baseline"]
  rows = []
  for record in records:
    if regime in UNTUNED:  # Compare with the baseline at the same rate.
      base = _runs_at(records, "baseline", record.learning_rate)
    steps_ratio = flops_ratio = None
    if record.seed in base and record.curve:
      steps_ratio, flops_ratio = outcome_lib.ratios(record, base[record.seed])
    is_best = record in best.get(record.arm, {}).values()
    finite = math.isfinite(record.final_loss)
    rows.append(
      {
        "regime": regime,
        "arm": record.arm,
        "learning_rate": record.learning_rate,
        "seed": record.seed,
        "final_loss": record.final_loss if finite else None,
        "steps": record.steps,
        "flops": record.flops,
        "seconds": record.seconds,
        "steps_ratio": steps_ratio,
        "flops_ratio": flops_ratio,
        "best_rate": is_best,
        "dropped": len(best.get(record.arm, {})) < measures.SEEDS,
      }
    )
  return rows


def _runs_at(
  records: list[outcome_lib.Record], arm: str, rate: float
) -> dict[int, outcome_lib.Record]:
  return {r.seed: r for r in records if (r.arm, r.learning_rate) == (arm, rate)}


def table_by_rate(regime: str, records: list[outcome_lib.Record]) -> str:
  """Returns the table of a regime that is judged rate by rate."""
  lines = [
    f"### {TITLES[regime]} (`{regime}`)",
    "",
    "| peak | arm | FLOPs | final loss | minus baseline at this peak | |",
    "|---|---|---|---|---|---|",
  ]
  rates = sorted({r.learning_rate for r in records}, reverse=True)
  for rate in rates:
    at_rate = [r for r in records if r.learning_rate == rate]
    outcomes = outcome_lib.compare(at_rate)
    base = outcomes["baseline"]
    for each in sorted(outcomes.values(), key=lambda o: o.loss.mean):
      is_base = each.arm == "baseline"
      lines.append(
        f"| {rate:g} | {each.arm} | {each.flops:.2f} | {each.loss.mean:.3f} | "
        f"{'' if is_base else each.difference} | "
        f"{'' if is_base else measures.verdict_of(each, base)} |"
      )
  return "\n".join(lines) + "\n"


def stopped() -> str:
  """Returns a list of the regimes that were stopped."""
  return "".join(
    textwrap.fill(f"**Stopped: {TITLES[name]}** (`{name}`): {reason}", 80)
    + "\n"
    for name, reason in STOPPED.items()
  )


def confirmation() -> str:
  """Returns the judgement of text_seeds.yaml, on its own seeds alone."""
  records = _read("text_seeds")
  lines = [
    "### `text` once more, on seeds 3 to 7 alone (`text_seeds`)",
    "",
    "| arm | final loss, by seed | FLOPs | FLOPs to the baseline's mean loss | "
    "at most 0.7, and the interval below 0.9 |",
    "|---|---|---|---|---|",
  ]
  base = [record for record in records if record.arm == "baseline"]
  for arm in dict.fromkeys(record.arm for record in records):
    runs = [record for record in records if record.arm == arm]
    mean, low, high = measures.saving(records, arm)
    loss = statistics.mean(run.final_loss for run in runs)
    is_base = arm == "baseline"
    saves = "yes" if mean <= 0.7 and high < 0.9 else "no"
    lines.append(
      f"| {arm} | {loss} | {runs[0].flops / base[0].flops:.2f} | "
      f"{_ratio(mean)} ({_ratio(low)} to {_ratio(high)}) | "
      f"{'' if is_base else saves} |"
    )
  return "\n".join(lines) + "\n"


def _ratio(value: float) -> str:
  return f"{value:.3f}" if math.isfinite(value) else "not reached"


def table_of(regime: str, records: list[outcome_lib.Record]) -> str:
  """Returns the table of a regime, in Markdown."""
  outcomes = outcome_lib.compare(records)
  base = outcomes["baseline"]
  lines = [
    f"### {TITLES[regime]} (`{regime}`)",
    "",
    "| arm | peak | FLOPs | final loss | minus baseline, by seed | steps to "
    "the baseline's loss | FLOPs to it | FLOPs to its mean | minus `short`, by "
    "seed | FLOPs for an equal loss | |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
  ]
  order = sorted(outcomes.values(), key=lambda each: each.loss.mean)
  for each in order:
    is_base = each.arm == "baseline"
    reached = f"{each.reached} of {each.loss.n} seeds"
    cells = [
      each.arm,
      f"{each.learning_rate:g}",
      f"{each.flops:.2f}",
      f"{each.loss.mean:.3f}" + ("" if each.loss.n > 1 else " (one seed)"),
      "" if is_base else str(each.difference),
      "" if is_base else str(each.steps_ratio or reached),
      "" if is_base else str(each.flops_ratio or reached),
      ""
      if is_base
      else str(measures.flops_to_mean(records, each.arm) or "not reached"),
      str(measures.minus_short(records, each.arm) or "")
      if each.flops < 0.9
      else "",
      "" if is_base else measures.verdict_of(each, base),
    ]
    equal = None if is_base else measures.equal_loss(records, each.arm)
    shown = "" if equal is None else "{:.3f} ({:.3f} to {:.3f})".format(*equal)
    cells.insert(-1, shown)
    if each.arm == "short":
      cells[-3:-1] = ["", ""]
    lines.append("| " + " | ".join(cells) + " |")
  return "\n".join(lines) + "\n"


def tables_of(regimes: dict[str, list[outcome_lib.Record]]) -> list[str]:
  """Returns the tables of all regimes that were not stopped."""
  return [
    (table_by_rate if name in UNTUNED else table_of)(name, runs)
    for name, runs in regimes.items()
    if name not in STOPPED
  ]


def build() -> None:
  """Rebuilds map.json, the figure and the tables of the page."""
  regimes = read_regimes()
  files.write_json(
    RESULTS / "map.json",
    [row for name, runs in regimes.items() for row in rows_of(name, runs)],
  )
  drawn = {name: runs for name, runs in regimes.items() if name not in STOPPED}
  draw_map.draw(drawn, TITLES, UNTUNED, ROOT / "docs" / "figures" / "map.png")
  page = PAGE.read_text(encoding="utf-8")
  before, rest = page.split(_BEGIN)
  _, after = rest.split(_END)
  tables = "\n".join([*tables_of(regimes), confirmation(), stopped()])
  PAGE.write_text(f"{before}{_BEGIN}\n{tables}\n{_END}{after}", "utf-8")


if __name__ == "__main__":
  if len(sys.argv) > 3 and sys.argv[1] == "collect":
    collect(*sys.argv[2:])
  else:
    build()
