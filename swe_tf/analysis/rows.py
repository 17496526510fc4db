"""The rows that compare methods: measured, then the paper's, then the budget.

Tables 1 to 5 and Figure 4 of the paper are selections of these rows.
"""

import dataclasses

from swe_tf.analysis import comparisons
from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import reference
from swe_tf.analysis import run_config
from swe_tf.analysis import tables
from swe_tf.analysis.tables import Column
from swe_tf.methods import catalog
from swe_tf.scoring import column
from swe_tf.sharing import untie_step as untie_step_lib

METHOD_COLUMNS = (
  Column("method", "method"),
  Column("unit", "unit"),
  Column("untie_step", "untie step", ",.0f"),
  Column("learning_rate", "peak rate", "g"),
)
SEEDS = Column("n", "seeds", "d")
LEFT_OUT = Column("left_out", "left out")
LOSS = Column("validation_loss", "validation loss (nats)", ".4f", spread=True)
ACCURACY = Column("mlm_accuracy", "MLM accuracy (%)", ".2f", spread=True)
PAPER_COLUMNS = (
  Column("paper_gain", "paper's gain (points, at its scale)", "+.2f"),
  Column("gain_minus_paper", "gain - paper's gain", "+.2f"),
  Column("paper_scale", "paper's scale"),
)
COLUMNS = (
  *METHOD_COLUMNS,
  Column("rates_tried", "rates tried", "d"),
  SEEDS,
  Column("pairs", "seeds shared with baseline", "d"),
  LEFT_OUT,
  LOSS,
  Column("loss_difference", "loss - baseline", "+.4f", spread=True),
  ACCURACY,
  Column("mlm_gain", "gain over baseline (points)", "+.2f", spread=True),
  *PAPER_COLUMNS,
  Column("paper_mlm", "paper's MLM accuracy (%)", ".2f"),
  Column("mlm_minus_paper", "accuracy - paper's", "+.2f"),
  Column("squad_average", "SQuAD average", ".2f", spread=True),
  Column("glue_average_dev", "GLUE average (dev)", ".2f", spread=True),
  Column("glue_average", "GLUE average (test)", ".2f", spread=True),
  Column("steps", "steps", ",d"),
  Column("tokens", "tokens", ",d"),
  Column("seconds", "wall time (s)", ",.0f", spread=True),
)


def method_cells(group: groups_lib.Group) -> tables.Row:
  """Returns the cells of `METHOD_COLUMNS`."""
  return {
    "method": group.config.label,
    "unit": group.config.unit,
    "untie_step": group.untie_step,
    "learning_rate": group.config.learning_rate,
  }


def result_cells(group: groups_lib.Group) -> tables.Row:
  """Returns `method_cells`, and `SEEDS`, `LEFT_OUT`, `LOSS` and `ACCURACY`."""
  return method_cells(group) | {
    "n": len(group.runs),
    "left_out": group.reasons,
    "validation_loss": group.statistic(found_runs.LOSS),
    "mlm_accuracy": group.statistic(found_runs.ACCURACY),
  }


def row(
  name: str, group: groups_lib.Group, comparison: comparisons.Comparison
) -> tables.Row:
  """Returns the cells of `COLUMNS` for a method that was run.

  Args:
    name: The title of the method in the comparison.
    group: Its runs.
    comparison: The setting.
  """
  config, metric = group.config, found_runs.ACCURACY
  gain = group.difference(comparison.baseline, metric)
  difference = group.difference(comparison.baseline, found_runs.LOSS)
  cells = result_cells(group) | {
    "rates_tried": len(comparison.rates[name]),
    "pairs": difference.n if difference else None,
    "loss_difference": difference,
    "mlm_gain": gain,
    "squad_average": group.statistic(column.SQUAD_AVERAGE),
    "glue_average_dev": group.statistic(column.dev_name(column.GLUE_AVERAGE)),
    "glue_average": group.statistic(column.GLUE_AVERAGE),
    "seconds": groups_lib.summarize(run.seconds for run in group.runs),
  }
  if group.runs:
    cells |= {"steps": config.train_steps, "tokens": config.tokens}
  return cells | paper_cells(
    config, metric, "mlm", group.statistic(metric), gain
  )


def absent_row(
  config: run_config.RunConfig, method: str, unit_size: int
) -> tables.Row:
  """Returns the row of a method of the paper that was not run.

  Args:
    config: The config of a run in the setting.
    method: The method.
    unit_size: The number of layers in a unit.
  """
  wanted = dataclasses.replace(
    config,
    method=method,
    rule=catalog.FIXED,
    unit_size=unit_size,
    untie_step=untie_step_lib.resolve_untie_step(config.train_steps),
  )
  return {
    "method": method,
    "unit": wanted.unit if method == catalog.SWE else None,
    "n": 0,
  } | paper_cells(wanted, found_runs.ACCURACY, "mlm")


def paper_cells(
  config: run_config.RunConfig,
  metric: str,
  key: str,
  measured: groups_lib.Statistic | None = None,
  gain: groups_lib.Statistic | None = None,
) -> tables.Row:
  """Returns the cells that compare a measured score with the paper's.

  Args:
    config: The config of the run.
    metric: One of `paper.METRICS`.
    key: Its name in the columns `paper_KEY` and `KEY_minus_paper`.
    measured: The score.
    gain: The gain over the baseline.
  """
  theirs = reference.gain(config, metric)
  score = reference.score(config, metric)
  is_there = theirs is not None or score is not None
  scale = reference.scale_title(reference.scale(config))
  return {
    "paper_gain": theirs,
    "gain_minus_paper": _minus(gain, theirs),
    "paper_scale": scale if is_there else None,
    f"paper_{key}": score,
    f"{key}_minus_paper": _minus(measured, score),
  }


def _minus(
  ours: groups_lib.Statistic | None, theirs: float | None
) -> float | None:
  return None if ours is None or theirs is None else ours.mean - theirs
