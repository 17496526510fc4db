"""The map: when sharing pays, from the runs of its regimes.

    python -m experiments.build_map collect FILE RUNS...   # also while it runs
    python -m experiments.build_map                        # rebuilds the rest
    python -m experiments.build_map restore FILE RUNS PARAMS_OVERRIDE

`collect` adds the finished runs of sweeps, with their curves, to
docs/results/map/FILE.json. On a machine without the runs' directories,
`restore` makes them, as far as `swe sweep experiments/map/FILE.yaml` needs them
to go on with what is missing. Without arguments, docs/results/map.json (one row
per run), the figure and the tables of docs/map.md are rebuilt from these files.
Intervals and words are those of `swe_tf.analysis`; seed 0 chose the rates and
never counts.
"""

from collections.abc import Mapping
import dataclasses
import json
import math
import pathlib
import sys
import textwrap
from typing import Any

from experiments import draw_map
from experiments import equal_loss
from swe_tf import files
from swe_tf import yaml_files
from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import scalars
from swe_tf.analysis import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "map.md"
WHY = ROOT / "docs" / "why.md"
FIGURE = ROOT / "docs" / "figures" / "map.png"
COST_FIGURE = ROOT / "docs" / "figures" / "cost.png"
NO_SEED = -1  # Where no seed chose a rate.


@dataclasses.dataclass(frozen=True)
class Regime:
  """A regime of the map.

  Attributes:
    title: What it is.
    study: Its first study file, in experiments/.
    files: All files of docs/results/map/ with its runs.
    smaller: The baseline with a smaller budget, for FLOPs for an equal loss.
    stopped: Why it was stopped and nothing is judged; empty if it was not.
    tokens_per_weight: Of its baseline; None for that of its study's config, if
      the code of today still runs it.
    peak: The only peak rate whose runs belong to it; None for all.
  """

  title: str
  study: str
  files: tuple[str, ...]
  smaller: str = "short"
  stopped: str = ""
  tokens_per_weight: float | None = None
  peak: float | None = None


REGIMES = {
  "long_300_rate": Regime(
    "long runs, second horizon, all at 4e-3",
    "map/long_300",
    ("long_300_rate", "long_300"),
    smaller="half",
    peak=4e-3,
  ),
  "long_300": Regime(
    "long runs, second horizon",
    "map/long_300",
    ("long_300",),
    smaller="half",
  ),
  "long": Regime(
    "long runs, first horizon",
    "map/long",
    (
      *("long", "long_seeds", "long_one_loop"),
      *("long_own", "long_warmup", "long_knobs"),
    ),
    smaller="half",
  ),
  "text": Regime(
    "characters, 1,024 tokens per step",
    "studies/few_loops",
    (
      *("text", "text_seeds", "text_tau", "text_tau70", "text_shallow"),
      "text_fresh",
    ),
  ),
  "small_batch": Regime(
    "characters, 256 tokens per step",
    "map/small_batch",
    ("small_batch",),
  ),
  "causal": Regime(
    "causal language model", "map/causal", ("causal",), tokens_per_weight=1.27
  ),
  "short_data": Regime(
    "20 epochs of 15 kB", "map/short_data", ("short_data", "short_data_fresh")
  ),
  "pointers": Regime(
    "pointer chasing", "map/pointers", ("pointers", "pointers_fresh")
  ),
  "low_rate": Regime("rates far below the best", "map/low_rate", ("low_rate",)),
  "post_ln": Regime(
    "Post-LN, 24 layers",
    "map/post_ln",
    ("post_ln",),
    stopped="after 600 steps every arm but one was still at the entropy of "
    "single tokens (3.02), where the rule drops nothing and no rate is the "
    "best. The exception is stacking: 6 layers first, then 24, got to 2.881 in "
    "as many steps. Two more runs were under way then; they have no result and "
    "are in no file.",
  ),
}
# These ask what happens at given rates, so no rate is the best.
UNTUNED = ("low_rate",)
# In words, for tables and figures.
LABELS = {
  "baseline": "baseline",
  "layers3": "3 layers that stay 3",
  "layers6": "6 layers that stay 6",
  "short": "baseline with 0.73 of the steps",
  "half": "baseline with half of the steps",
  "equal_init": "equal initial weights, never tied",
  "swe10": "SWE as printed (10%)",
  "swe_1x12": "SWE as printed (10%)",
  "swe10_2x": "SWE, units of 2 layers",
  "swe_2x6": "SWE, units of 2 layers",
  "loops1": "one layer for 30%, then 12",
  "one_loop_30": "one layer for 30%, then 12",
  "loops1_50": "one layer for 50%, then 12 (`one_loop`)",
  "one_loop_50": "one layer for 50%, then 12 (`one_loop`)",
  "loops1_70": "one layer for 70%, then 12",
  "one_loop_5": "one layer for 5%, then 12",
  "one_loop_10": "one layer for 10%, then 12",
  "loops3": "one layer applied 3 times for 30%",
  "few_loops": "a quarter of the layers for 30% (`few_loops`)",
  "stacking": "stacking: a quarter of the layers for 30%",
  "stacking_50": "stacking: a quarter of the layers for 50%",
  "stacking_70": "stacking: a quarter of the layers for 70%",
  "stages": "tied, 1, 3, 6 loops to 30%, then 12",
  "noise": "one layer for 30%, copies with noise",
  "redraw": "one layer for 30%, half of each copy redrawn",
  "identity": "one layer for 30%, new layers start as the identity",
  "own_1x12": "SWE 10%, own initial weights",
  "own_2x6": "SWE 10%, units of 2, own initial weights",
  "warm_10": "baseline, warm-up of 10%",
  "own_warm_10": "SWE 10%, own initial weights, warm-up of 10%",
  "own_1x12_30": "SWE 30%, own initial weights",
  "own_few_loops": "a quarter of the layers for 30%, own initial weights",
  "own_layers": "SWE 10%, first and last layer never tied",
  "kernels": "SWE 10%, only kernels tied",
  "shared_scale": "SWE 10%, shared steps of 0.29",
  "warm_up": "SWE 10%, warm-up after untying",
  "own_moments": "SWE 10%, own second moments",
  "adaptive": "tied until gradients disagree",
  "tied": "always tied",
}
# Stacking in the long regimes is that of Gong et al.
_LONG_LABELS = {"stacking": "stacking: 3, 6, 12 layers (12.5%, 30%)"}
# The arms of README's figure, and those among them that share.
_COST_LABELS = {
  "baseline": "12 layers",
  "half": "12 layers, half the steps",
  "layers6": "6 layers",
  "layers3": "3 layers",
  "stacking": "stacking",
  "few_loops": "few loops",
  "swe_2x6": "SWE, units of 2",
  "swe_1x12": "SWE as printed",
}
_SHARING = ("few_loops", "swe_2x6", "swe_1x12")
_BEGIN, _END = "<!-- map: begin -->\n", "<!-- map: end -->\n"
_TOP_BEGIN, _TOP_END = "<!-- top: begin -->\n", "<!-- top: end -->\n"

_COSINES = ("<!-- cosines: begin -->\n", "<!-- cosines: end -->\n")
_GAIN_BEGIN, _GAIN_END = "<!-- gain: begin -->\n", "<!-- gain: end -->\n"
# The arms whose results a method's card shows.
CARDS = {
  "swe": (
    *("swe10", "swe_1x12", "swe10_2x", "swe_2x6"),
    *("own_1x12", "own_2x6", "own_1x12_30"),
  ),
  "few_loops": (
    *("one_loop_5", "one_loop_10", "loops1", "one_loop_30"),
    *("loops1_50", "one_loop_50", "loops1_70", "loops3", "few_loops"),
    *("stages", "noise", "redraw", "identity"),
  ),
  "stacking": ("stacking", "stacking_50", "stacking_70"),
  "adaptive": ("adaptive",),
  "always_tied": ("tied",),
  "equal_init": ("equal_init",),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(outcome_lib.Record):
  """A run, with what only the map needs to know of it.

  Attributes:
    cosines: Pairs of step and the mean cosine between the weights of two
      layers; empty if they were not kept.
  """

  cosines: tuple[tuple[int, float], ...] = ()


Records = list[Record]


def collect(name: str, *sources: str) -> None:
  """Adds the finished runs of sweeps to a JSON file."""
  found = {_key(record): record for record in _read(name)}
  for source in map(pathlib.Path, sources):
    runs = files.read_json(source / "study.json")["runs"]
    # The axes of a study may be in any order.
    paths = {
      tuple(point[axis] for axis in ("arm", "learning_rate", "seed")): source
      / run
      for run, point in runs.items()
    }
    for record in outcome_lib.read_records(source):
      path = paths[_key(record)]
      sharing = yaml_files.read(path / "params.yaml")["task"]["sharing"]
      alike = cosines(
        scalars.read_scalars(str(path / "train")), sharing.get("unit_size", 1)
      )
      found[_key(record)] = Record(**vars(record), cosines=alike)
  # One run per line: a diff shows which were added.
  lines = [json.dumps(as_table(found[key])) for key in sorted(found)]
  path = RESULTS / "map" / f"{name}.json"
  path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def cosines(
  curves: Mapping[str, scalars.Curve], unit_size: int
) -> tuple[tuple[int, float], ...]:
  """Returns the mean cosine between the weights of two units, by step.

  From each layer's distance d to the mean of the layers at the same place in
  their B units, relative to its own norm: for layers of about equal norms, the
  squared norm of that mean is 1 - mean(d^2) of theirs, and the mean cosine of
  pairs follows from it.
  """
  by_step: dict[int, list[float]] = {}
  for tag, curve in curves.items():
    if tag.startswith("layers/distance/"):
      for step, distance in curve:
        by_step.setdefault(step, []).append(distance**2)
  found = []
  for step, squares in sorted(by_step.items()):
    units = len(squares) // unit_size
    if units > 1:
      common = 1.0 - sum(squares) / len(squares)
      found.append((step, (units * common - 1.0) / (units - 1.0)))
  return tuple(found)


def restore(name: str, output_dir: str, params_override: str = "") -> None:
  """Makes the directories of collected runs, which a sweep then skips."""
  from swe_tf.studies import experiments
  from swe_tf.studies import study_file
  from swe_tf.studies import sweep
  from swe_tf.studies import tuning

  found = {_key(record): record for record in _read(name)}
  path = ROOT / "experiments" / "map" / f"{name}.yaml"
  study = study_file.read_study(str(path))
  if study.tuning is not None:
    study = study.with_points([tuning.Point(*key) for key in found])
  configs = experiments.make_configs(study, params_override)
  for run in sweep.make_runs(study, configs, output_dir):
    axes = run.about["axes"]
    key = axes["arm"], axes["learning_rate"], axes["seed"]
    if key in found and run.directory.read_result() is None:
      record = found[key]
      run.begin()
      result = {
        "status": "finished",
        "steps": record.steps,
        "metrics": dict.fromkeys(study.metrics, record.final_loss),
        "seconds": record.seconds,
        "cpu_seconds": record.seconds,
      }
      files.write_json(run.directory.path / "result.json", result)
      for name in ("train", "validation"):  # `collect` looks for curves.
        (run.directory.path / name).mkdir(exist_ok=True)


def _key(record: Record) -> tuple[str, float, int]:
  return record.arm, record.learning_rate, record.seed


def as_table(record: Record) -> dict[str, Any]:
  """Returns a record for JSON; a loss that is not finite becomes None."""
  table = dataclasses.asdict(record)
  for name in ("curve", "cosines"):
    table[name] = [(step, round(value, 5)) for step, value in table[name]]
  if not math.isfinite(record.final_loss):
    table["final_loss"] = None
  return table


def from_table(table: dict[str, Any]) -> Record:
  """Returns the record that `as_table` wrote."""
  loss = table["final_loss"]
  pairs = {
    name: tuple((int(step), kind(value)) for step, value in table[name])
    for name, kind in (("phases", int), ("curve", float), ("cosines", float))
    if name in table
  }
  loss = {"final_loss": math.inf if loss is None else loss}
  return Record(**{**table, **pairs, **loss})


def _read(name: str) -> Records:
  path = RESULTS / "map" / f"{name}.json"
  tables = files.read_json(path) if path.exists() else []
  return [from_table(table) for table in tables]


def read_regimes() -> dict[str, Records]:
  """Returns all runs of the regimes that have any."""
  regimes = {}
  for name, regime in REGIMES.items():
    found: dict[Any, Record] = {}
    for file in regime.files:
      for record in _read(file):
        if regime.peak in (None, record.learning_rate):
          arm = record.arm.removesuffix("_at_4")
          record = dataclasses.replace(record, arm=arm)
          found.setdefault(_key(record), record)  # Some repeat the baseline.
    if found:
      regimes[name] = list(found.values())
  return regimes


def tuning_seed(regime: str) -> int:
  """Returns the seed that chose the rates of a regime."""
  return NO_SEED if regime in UNTUNED else outcome_lib.TUNING_SEED


def outcomes_of(regime: str, records: Records) -> dict[str, equal_loss.Outcome]:
  """Returns the outcomes of a regime's arms on fresh seeds."""
  return equal_loss.compare(
    records, REGIMES[regime].smaller, tuning_seed(regime)
  )


def label_of(regime: str, arm: str) -> str:
  """Returns an arm in words."""
  if regime.startswith("long") and arm in _LONG_LABELS:
    return _LONG_LABELS[arm]
  return LABELS[arm]


def rows_of(regime: str, records: Records) -> list[dict[str, Any]]:
  """Returns the rows of a regime in map.json: all runs that were started."""
  best = outcome_lib.at_best_rates(records, tuning_seed(regime))
  return [
    {
      "regime": regime,
      "arm": record.arm,
      "learning_rate": record.learning_rate,
      "seed": record.seed,
      "final_loss": record.final_loss
      if math.isfinite(record.final_loss)
      else None,
      "steps": record.steps,
      "flops": record.flops,
      "seconds": record.seconds,
      "best_rate": record in best.get(record.arm, {}).values(),
      "counts": record.seed != tuning_seed(regime),
    }
    for record in records
  ]


def table_of(regime: str, records: Records) -> str:
  """Returns the table of a regime, in Markdown."""
  lines = [
    f"### {REGIMES[regime].title} (`{regime}`)",
    "",
    "| arm | peak | FLOPs | final loss | seeds | minus baseline | | FLOPs for "
    "an equal loss | |",
    "|---|---|---|---|---|---|---|---|---|",
  ]
  outcomes = outcomes_of(regime, records)
  order = sorted(
    outcomes.values(),
    key=lambda each: each.loss.mean if each.loss else math.inf,
  )
  for each in order:
    is_base = each.arm == "baseline"
    difference = None if is_base else each.difference
    lines.append(
      f"| {label_of(regime, each.arm)} | {each.learning_rate:g} | "
      f"{each.flops:.2f} | "
      + (f"{each.loss.mean:.3f} | {each.loss.n}" if each.loss else "| 0")
      + f" | {difference or _seed_0_only(each)} | "
      f"{_bold(difference.word()) if difference else ''} | "
      f"{each.equal_loss or ''} | "
      f"{_bold(each.equal_loss.word(1.0)) if each.equal_loss else ''} |"
    )
  return "\n".join(lines) + "\n"


def _seed_0_only(outcome: outcome_lib.Outcome) -> str:
  if outcome.arm == "baseline" or outcome.tuning_difference is None:
    return ""
  return f"seed 0 only: {outcome.tuning_difference:+.3f}"


def _bold(word: str) -> str:
  return f"**{word}**" if word == statistics.PAYS else word


def table_by_rate(regime: str, records: Records) -> str:
  """Returns the table of a regime that is judged rate by rate."""
  lines = [
    f"### {REGIMES[regime].title} (`{regime}`)",
    "",
    "| peak | arm | FLOPs | final loss | minus baseline at this peak | |",
    "|---|---|---|---|---|---|",
  ]
  for rate in sorted({r.learning_rate for r in records}, reverse=True):
    at_rate = [r for r in records if r.learning_rate == rate]
    outcomes = outcome_lib.compare(at_rate, tuning_seed=NO_SEED)
    for each in outcomes.values():
      assert each.loss is not None
      difference = None if each.arm == "baseline" else each.difference
      lines.append(
        f"| {rate:g} | {label_of(regime, each.arm)} | {each.flops:.2f} | "
        f"{each.loss.mean:.3f} | {difference or ''} | "
        f"{_bold(difference.word()) if difference else ''} |"
      )
  return "\n".join(lines) + "\n"


def tables_of(regimes: dict[str, Records]) -> list[str]:
  """Returns the tables of all regimes that were not stopped."""
  return [
    (table_by_rate if name in UNTUNED else table_of)(name, runs)
    for name, runs in regimes.items()
    if not REGIMES[name].stopped
  ]


def stopped() -> str:
  """Returns a list of the regimes that were stopped."""
  return "".join(
    textwrap.fill(f"**Stopped: {each.title}** (`{name}`): {each.stopped}", 80)
    + "\n"
    for name, each in REGIMES.items()
    if each.stopped
  )


def top_table(regimes: dict[str, Records]) -> str:
  """Returns the table that opens the page: a line per regime."""
  lines = [
    "| regime | tokens per weight | does depth pay? | SWE as printed | "
    "SWE, units of 2 layers | `one_loop` | stacking |",
    "|---|---|---|---|---|---|---|",
  ]
  for name, records in regimes.items():
    if REGIMES[name].stopped or name in UNTUNED:
      continue
    outcomes = outcomes_of(name, records)
    shown = [
      _cell(outcomes, *arms)
      for arms in (
        ("swe10", "swe_1x12"),
        ("swe10_2x", "swe_2x6"),
        ("loops1_50", "one_loop_50", "one_loop_30"),
        ("stacking",),
      )
    ]
    lines.append(
      f"| {REGIMES[name].title} | {tokens_per_weight(name):.0f} | "
      f"{depth_pays(outcomes)} | {' | '.join(shown)} |"
    )
  return "\n".join(lines) + "\n"


def _cell(outcomes: dict[str, equal_loss.Outcome], *arms: str) -> str:
  """Returns an arm's word and interval; FLOPs too if its steps are cheaper."""
  found = [outcomes[arm] for arm in arms if arm in outcomes]
  if not found:
    return "not run"
  each = found[0]
  if each.difference is None:
    return _seed_0_only(each)
  cell = f"{_bold(each.difference.word())}: {each.difference}"
  if each.equal_loss is not None and each.flops < 0.95:
    cell += (
      f"; FLOPs for an equal loss {each.equal_loss}: "
      f"{_bold(each.equal_loss.word(1.0))}"
    )
  return cell


def gain_table(regimes: dict[str, Records], arms: tuple[str, ...]) -> str:
  """Returns the results of some arms in all regimes, for a method's card."""
  lines = [
    "| regime | arm | FLOPs | minus baseline | | FLOPs for an equal loss | |",
    "|---|---|---|---|---|---|---|",
  ]
  for name, records in regimes.items():
    if REGIMES[name].stopped or name in UNTUNED:
      continue
    outcomes = outcomes_of(name, records)
    for each in (outcomes[arm] for arm in arms if arm in outcomes):
      equal = each.equal_loss
      lines.append(
        f"| {REGIMES[name].title} | {label_of(name, each.arm)} | "
        f"{each.flops:.2f} | {each.difference or _seed_0_only(each)} | "
        f"{_bold(each.difference.word()) if each.difference else ''} | "
        f"{equal or ''} | {_bold(equal.word(1.0)) if equal else ''} |"
      )
  return "\n".join(lines) + "\n"


def cosine_table(regime: str, records: Records) -> str:
  """Returns how alike the layers of each arm are, beside its loss."""
  parts = (0.1, 0.3, 0.5, 0.7, 1.0)
  lines = [
    f"| arm (`{regime}`) | final loss | "
    + " | ".join(f"at {part:.0%}" for part in parts)
    + " |",
    "|---|---" + "|---" * len(parts) + "|",
  ]
  best = outcome_lib.at_best_rates(records)
  rows = []
  for arm, runs in best.items():
    curves = [(run.steps, run.cosines) for run in runs.values() if run.cosines]
    if not curves:
      continue
    cells = []
    for part in parts:
      # While one layer is applied, there is nothing to compare.
      found = [
        value
        for steps, curve in curves
        for step, value in curve
        if abs(step - part * steps) <= 0.5 * steps / len(curve)
      ]
      cells.append(f"{sum(found) / len(found):.2f}" if found else "")
    loss = sum(run.final_loss for run in runs.values()) / len(runs)
    rows.append((loss, label_of(regime, arm), cells))
  for loss, label, cells in sorted(rows):
    lines.append(f"| {label} | {loss:.3f} | {' | '.join(cells)} |")
  return "\n".join(lines) + "\n"


def depth_pays(outcomes: dict[str, outcome_lib.Outcome]) -> str:
  """Returns whether the baseline beats a quarter (or half) of its layers."""
  few = outcomes.get("layers3") or outcomes.get("layers6")
  if few is None or few.difference is None:
    return "not run"
  layers = few.arm.removeprefix("layers")
  answer = {
    statistics.PAYS: f"no: {layers} layers end lower",
    statistics.COSTS: f"yes: {layers} layers end higher",
    statistics.CANNOT_TELL: "cannot tell",
  }[few.difference.word()]
  return f"{answer}, {few.difference}"


def tokens_per_weight(regime: str) -> float:
  """Returns the tokens of a regime's baseline per weight of its blocks."""
  from swe_tf.configs import cost
  from swe_tf.modeling import registry
  from swe_tf.modeling import sizes
  from swe_tf.studies import experiments
  from swe_tf.studies import study_file

  known = REGIMES[regime].tokens_per_weight
  if known is not None:
    return known
  path = ROOT / "experiments" / f"{REGIMES[regime].study}.yaml"
  study = study_file.read_study(str(path))
  config = experiments.make_config(
    study, study.runs[0], "task.train_data.input_path=x"
  )
  size = registry.require_encoder(config.task.as_dict()).size
  weights = size.num_layers * sizes.block_parameter_count(size)
  return cost.tokens(config) / weights


def build() -> None:
  """Rebuilds map.json, the figure and the tables of the page."""
  regimes = read_regimes()
  rows = [row for name, runs in regimes.items() for row in rows_of(name, runs)]
  lines = ",\n".join(json.dumps(row) for row in rows)
  (RESULTS / "map.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
  drawn = [
    name
    for name in ("long_300_rate", "long", "text")
    # One seed has no interval to draw.
    if any(
      each.difference and each.difference.n > 1
      for each in outcomes_of(name, regimes.get(name, [])).values()
    )
  ]
  draw_map.draw(
    {_panel_title(name): _panel(name, regimes[name]) for name in drawn[:2]},
    FIGURE,
  )
  costs = {
    _panel_title(name): outcomes_of(name, regimes[name])
    for name in drawn
    if name.startswith("long")
  }
  draw_map.draw_costs(
    {
      title: found
      for title, found in costs.items()
      if "half" in found and found["half"].difference.n > 2
    },
    _COST_LABELS,
    _SHARING,
    COST_FIGURE,
  )
  page = PAGE.read_text(encoding="utf-8")
  page = between(page, _TOP_BEGIN, _TOP_END, top_table(regimes))
  tables = "\n".join([*tables_of(regimes), stopped()])
  page = between(page, _BEGIN, _END, tables)
  cosines = cosine_table("long", regimes["long"])
  PAGE.write_text(page, encoding="utf-8")
  why = WHY.read_text(encoding="utf-8")
  WHY.write_text(between(why, *_COSINES, cosines), encoding="utf-8")
  for card, arms in CARDS.items():
    path = ROOT / "docs" / "cards" / f"{card}.md"
    text = path.read_text(encoding="utf-8")
    table = gain_table(regimes, arms)
    path.write_text(between(text, _GAIN_BEGIN, _GAIN_END, table), "utf-8")


def _panel_title(regime: str) -> str:
  tokens = tokens_per_weight(regime)
  return f"{REGIMES[regime].title}: {tokens:.0f} tokens per weight"


def _panel(
  regime: str, records: Records
) -> list[tuple[str, outcome_lib.Outcome]]:
  return [
    (label_of(regime, each.arm).replace("`", ""), each)
    for each in outcomes_of(regime, records).values()
  ]


def between(page: str, begin: str, end: str, text: str) -> str:
  before, rest = page.split(begin)
  return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
  if len(sys.argv) > 3 and sys.argv[1] in ("collect", "restore"):
    {"collect": collect, "restore": restore}[sys.argv[1]](*sys.argv[2:])
  else:
    build()
