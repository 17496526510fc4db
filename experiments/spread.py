"""When is it decided how a run ends? Losses on the way against the last one.

    python -m experiments.spread        # fills the table of docs/why.md

Over the fresh seeds of an arm at its best rate, at the first horizon of the
long regime: the correlation of the validation loss after a part of the steps
with the final one. Seeds are common to the arms, so arms are no independent
repetitions of each other; nothing is judged here.
"""

import numpy as np
from scipy import stats

from experiments import build_map
from swe_tf.analysis import outcome as outcome_lib

REGIME, LEAST_SEEDS = "long", 8
PARTS = (0.1, 0.15, 0.2, 0.25, 0.35, 0.45, 0.75)
_MARKS = ("<!-- spread: begin -->\n", "<!-- spread: end -->\n")


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


if __name__ == "__main__":
  page = build_map.WHY.read_text(encoding="utf-8")
  page = build_map.between(page, *_MARKS, table())
  build_map.WHY.write_text(page, encoding="utf-8")
