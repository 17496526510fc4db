"""When is it decided how a run ends? Losses on the way against the last one.

    python -m experiments.spread        # fills two tables of docs/why.md

Over the fresh seeds of an arm at its best rate, at the first horizon of the
long regime: the correlation of the validation loss after a part of the steps
with the final one. Seeds are common to the arms, so arms are no independent
repetitions of each other; nothing is judged here. The second table is of the
second horizon: how each single run ended.
"""

import numpy as np
from scipy import stats

from experiments import build_map
from swe_tf.analysis import outcome as outcome_lib

REGIME, LEAST_SEEDS = "long", 8
PARTS = (0.1, 0.15, 0.2, 0.25, 0.35, 0.45, 0.75)
SECOND_HORIZON = ("long_300_rate", "long_300")
_MARKS = ("<!-- spread: begin -->\n", "<!-- spread: end -->\n")
_ENDS_MARKS = ("<!-- ends: begin -->\n", "<!-- ends: end -->\n")


def correlations(runs: list[build_map.Record]) -> list[float]:
  """Returns the correlation with the final loss after each part of the steps.

  Between two validations the loss is interpolated.
  """
  final = [run.final_loss for run in runs]
  found = []
  for part in PARTS:
    losses = [np.interp(part * r.steps, *zip(*r.curve)) for r in runs]
    found.append(float(stats.pearsonr(losses, final).statistic))
  return found


def table() -> str:
  """Returns the table of the page, in Markdown."""
  lines = [
    f"| arm (`{REGIME}`) | peak | deviation of the final loss | "
    + " | ".join(f"at {part:.0%}" for part in PARTS)
    + " |",
    "|---|---|---" + "|---" * len(PARTS) + "|",
  ]
  records = build_map.read_regimes()[REGIME]
  for arm, at_best in outcome_lib.at_best_rates(records).items():
    runs = [
      run for seed, run in at_best.items() if seed != outcome_lib.TUNING_SEED
    ]
    if len(runs) < LEAST_SEEDS:
      continue
    cells = " | ".join(f"{each:+.2f}" for each in correlations(runs))
    deviation = np.std([run.final_loss for run in runs], ddof=1)
    lines.append(
      f"| {build_map.label_of(REGIME, arm)} | {runs[0].learning_rate:g} | "
      f"{deviation:.3f} | {cells} |"
    )
  return "\n".join(lines) + "\n"


def ends_table() -> str:
  """Returns the final loss of each run of 12 layers at the second horizon."""
  regimes = build_map.read_regimes()
  losses: dict[tuple[str, float], dict[int, float]] = {}
  for regime in SECOND_HORIZON:
    for run in regimes[regime]:
      if not run.arm.startswith(("layers", "half")):
        label = build_map.label_of(regime, run.arm)
        found = losses.setdefault((label, run.learning_rate), {})
        found[run.seed] = run.final_loss
  seeds = sorted({seed for found in losses.values() for seed in found})
  lines = [
    "| arm (298 tokens per weight) | peak | "
    + " | ".join(f"seed {seed}" for seed in seeds)
    + " |",
    "|---|---" + "|---" * len(seeds) + "|",
  ]
  for (label, peak), found in sorted(
    losses.items(), key=lambda each: min(each[1].values())
  ):
    cells = [f"{found[s]:.3f}" if s in found else "" for s in seeds]
    lines.append(f"| {label} | {peak:g} | {' | '.join(cells)} |")
  return "\n".join(lines) + "\n"


if __name__ == "__main__":
  page = build_map.WHY.read_text(encoding="utf-8")
  page = build_map.between(page, *_MARKS, table())
  page = build_map.between(page, *_ENDS_MARKS, ends_table())
  build_map.WHY.write_text(page, encoding="utf-8")
