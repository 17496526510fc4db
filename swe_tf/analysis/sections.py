"""The sections of a report, from the frames of runs and arms.

The user's own runs come first. The paper's numbers stand in one section, for
runs that are rows of its tables.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from swe_tf.analysis import comparisons
from swe_tf.analysis import figures
from swe_tf.analysis import finetuning as finetuning_lib
from swe_tf.analysis import tables
from swe_tf.analysis.tables import Column
from swe_tf.sharing import untie_step as untie_step_lib

_METHOD = (
  Column("method", "method"),
  Column("unit", "unit"),
  Column("untie_step", "untie step", ",.0f"),
)
_RATE = Column("learning_rate", "peak rate", "g")
_SEEDS = Column("seeds", "seeds", "d")
_LEFT_OUT = Column("left_out", "left out")
_LOSS = Column("validation_loss", "validation loss", ".4f", spread=True)
_ACCURACY = Column("mlm_accuracy", "MLM accuracy (%)", ".2f", spread=True)
_FLOPS_RATIO = Column("flops_ratio", "FLOPs / baseline's", ".2f")
_METHODS = (
  *_METHOD,
  _SEEDS,
  _LOSS,
  Column("loss_difference", "loss − baseline's", "+.4f", spread=True),
  Column("verdict", "verdict"),
  _FLOPS_RATIO,
  _ACCURACY,
  Column("mlm_gain", "gain in accuracy (points)", "+.2f", spread=True),
  _RATE,
  Column("rates_tried", "rates tried", "d"),
  _LEFT_OUT,
)
_RATES = (
  *_METHOD,
  _RATE,
  _SEEDS,
  _LOSS,
  _ACCURACY,
  _LEFT_OUT,
  Column("shown", "in the other tables"),
)
_COST = (
  *_METHOD,
  Column("steps", "steps", ",d"),
  Column("tokens", "tokens", ",d"),
  Column("flops", "FLOPs", ".3g"),
  _FLOPS_RATIO,
  Column("seconds", "wall time (s)", ",.0f", spread=True),
  Column("steps_ratio", "steps to the baseline's loss", ".3f", spread=True),
  Column("reverse_ratio", "baseline's steps to this loss", ".3f", spread=True),
  Column("equal_loss", "FLOPs for this loss", ".2f", spread=True),
  Column("reached", "seeds that got there", "d"),
  Column("pairs", "seeds compared", "d"),
)
_SCORES = (
  *_METHOD,
  Column("score", "score"),
  Column("measured", "measured (%)", ".2f", spread=True),
  Column("gain", "gain over baseline (points)", "+.2f", spread=True),
)
_PAPER = (
  *_METHOD[:2],
  *_SCORES[-3:],
  Column("paper", "paper's (%)", ".2f"),
  Column("minus", "measured − paper's", "+.2f"),
  Column("paper_gain", "paper's gain (points)", "+.2f"),
)
_COLUMN = (
  Column("score", "score"),
  Column("dev", "dev (%)", ".2f"),
  Column("test", "test (%)", ".2f"),
)
_RUNS = (
  Column("run", "run"),
  *_METHOD,
  _RATE,
  Column("seed", "seed"),
  Column("status", "status"),
  Column("step", "step", ",d"),
  Column("steps", "of", ",d"),
  Column("tokens", "tokens", ",d"),
  Column("flops", "FLOPs", ".3g"),
  Column("seconds", "wall time (s)", ",.0f"),
  Column("validation_loss", "validation loss", ".4f"),
  Column("mlm_accuracy", "MLM accuracy (%)", ".2f"),
  Column("entropy", "entropy of single tokens", ".4f"),
)


def methods(arms: pd.DataFrame, runs: pd.DataFrame) -> tables.Section:
  """Every method of every setting."""
  return tables.Section(
    "methods",
    "Methods",
    [
      f"Entropy of single tokens: {entropy:.4f} nats. A model that ignores the "
      "context cannot have a lower loss."
      for entropy in sorted(runs.entropy.dropna().unique())
    ],
    tables.by_setting(arms, _METHODS),
  )


def losses(runs: pd.DataFrame, curves: pd.DataFrame) -> tables.Section:
  """The loss curves of each setting."""
  return tables.Section(
    "losses",
    "Loss curves",
    [],
    figures=[
      figures.draw_losses(f"loss_{number}", found, curves)
      for number, (_, found) in enumerate(
        comparisons.shown_runs(runs).groupby("setting", sort=False), start=1
      )
    ],
  )


def cost(arms: pd.DataFrame) -> tables.Section:
  """What the arms cost, and when each was as far as the other."""
  return tables.Section(
    "cost",
    "Cost",
    [
      "Steps to the baseline's loss: the step at which a run's validation loss "
      "first reaches the final loss of the baseline's run with the same seed, "
      "as a fraction of its steps; the next column swaps the roles. Both are "
      "empty unless all seeds get there. FLOPs for this loss: those of the "
      "run, divided by those that the baseline spends until it has the same "
      "loss.",
      "Learning rates are fully decayed only at the last step, so all three "
      "are read off in the middle of a schedule: a run scheduled to end there "
      "would need less. The baseline's row is the same reading of its own "
      "curve: below 1, it is noise.",
    ],
    tables.by_setting(arms[arms.seeds > 0], _COST),
  )


def untie_steps(arms: pd.DataFrame) -> tables.Section:
  """Untie steps from 0, the baseline, to the last step."""
  drawn: list[tables.Figure] = []
  for _, found in arms[arms.seeds > 0].groupby("setting", sort=False):
    fixed = found[found.is_fixed]
    taus = fixed.groupby("unit").untie_step.transform("nunique")
    chosen = pd.concat([found[found.is_baseline], fixed[taus > 1]])
    if (taus > 1).any():
      name = f"untie_step_{len(drawn) + 1}"
      drawn.append(figures.draw_untie_steps(name, chosen))
  return tables.Section(
    "untie_steps",
    "When to untie",
    [
      "Step 0 is the baseline, the last step is the ALBERT-like run. The paper "
      f"finds about {untie_step_lib.PAPERS_FRACTION:.0%} best (Figure 4)."
    ],
    figures=drawn,
  )


def learning_rates(runs: pd.DataFrame, curves: pd.DataFrame) -> tables.Section:
  """All peak learning rates, where a method was run with several."""
  rates = comparisons.summarize(
    runs[runs.rates > 1], curves, ("setting", "arm", "learning_rate")
  )
  return tables.Section(
    "learning_rates",
    "Learning rates",
    [
      "The other tables show, for each method, the rate with the lowest mean "
      "final validation loss among those with the most seeds. It was selected "
      "by the same number that it is then judged by."
    ],
    tables.by_setting(rates, _RATES),
  )


def finetuning(scores: pd.DataFrame, notes: Sequence[str]) -> tables.Section:
  """SQuAD and GLUE, score by score."""
  found = scores[scores.score != "MLM"]
  text = [
    "Mean over pre-training seeds of what swe finetune selected. Scores on "
    "GLUE's test sets come from the benchmark's site. An average is shown only "
    "if all of its tasks have scores."
  ]
  return tables.Section(
    "finetuning",
    "Fine-tuning (SQuAD and GLUE)",
    [*(text if len(found) else ()), *(f"Left out: {note}" for note in notes)],
    tables.by_setting(found, _SCORES),
  )


def columns(
  found: pd.DataFrame, site: Mapping[str, Mapping[str, float]]
) -> tables.Section:
  """The scores of single checkpoints, in the rows of the paper."""
  return tables.Section(
    "columns",
    "Fine-tuned checkpoints",
    [
      "The rows of the paper's tables, which report SQuAD's dev sets and "
      "GLUE's test sets. AX is Matthews' correlation. Test scores come from "
      "the benchmark's site; AX is scored here if its labels are available."
    ],
    [
      tables.Table(
        f"{each.name}: {each.checkpoint.name}, {each.init} weights",
        _COLUMN,
        finetuning_lib.column_frame(each.scores, site.get(each.name)),
      )
      for each in found.itertuples()
    ],
  )


def paper(scores: pd.DataFrame) -> tables.Section:
  """The runs that are rows of the paper's tables, beside its numbers."""
  return tables.Section(
    "paper",
    "Beside the paper (Tables 1 to 5)",
    [
      "Runs whose model, data, batch, steps, method and unit are those of a "
      "row of the paper. The paper's numbers are from single runs, its gains "
      "over its own baseline. It reports SQuAD's dev sets and GLUE's test sets."
    ],
    tables.by_setting(scores[scores.paper.notna()], _PAPER),
  )


def all_runs(runs: pd.DataFrame) -> tables.Section:
  """Every run, whether it counts or not."""
  listed = runs.assign(method=runs.label)
  listed["learning_rate"] = [rate or None for rate in runs.learning_rate]
  return tables.Section(
    "runs",
    "All runs",
    [
      "Only runs with the status “finished” are in the other tables and the "
      "figures."
    ],
    [tables.Table("", _RUNS, listed.sort_values("run"))],
  )
