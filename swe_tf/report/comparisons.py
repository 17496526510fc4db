"""The rows that compare methods: measured, then the paper's, then the budget.

Tables 1 to 5 and Figure 4 of the paper are selections of these rows.
"""

from collections.abc import Sequence
import dataclasses

from swe_tf.report import facts as facts_lib
from swe_tf.report import groups as groups_lib
from swe_tf.report import reference
from swe_tf.report import runs as runs_lib
from swe_tf.report import tables
from swe_tf.report.tables import Column

METHOD_COLUMNS = (
  Column("method", "method"),
  Column("unit", "unit"),
  Column("untie_step", "untie step", ",.0f"),
  Column("learning_rate", "peak rate", "g"),
)
COLUMNS = (
  *METHOD_COLUMNS,
  Column("rates_tried", "rates tried", "d"),
  Column("n", "seeds", "d"),
  Column("pairs", "seeds shared with baseline", "d"),
  Column("left_out", "left out"),
  Column("validation_loss", "validation loss (nats)", ".4f", spread=True),
  Column("loss_difference", "loss - baseline", "+.4f", spread=True),
  Column("mlm_accuracy", "MLM accuracy (%)", ".2f", spread=True),
  Column("mlm_gain", "gain over baseline (points)", "+.2f", spread=True),
  Column("paper_gain", "paper's gain (points, at its scale)", "+.2f"),
  Column("gain_minus_paper", "gain - paper's gain", "+.2f"),
  Column("paper_scale", "paper's scale"),
  Column("paper_mlm", "paper's MLM accuracy (%)", ".2f"),
  Column("mlm_minus_paper", "accuracy - paper's", "+.2f"),
  Column("squad_average", "SQuAD average", ".2f", spread=True),
  Column("glue_average", "GLUE average", ".2f", spread=True),
  Column("steps", "steps", ",d"),
  Column("tokens", "tokens", ",d"),
  Column("seconds", "wall time (s)", ",.0f", spread=True),
)


def method_cells(group: groups_lib.Group) -> dict[str, tables.Cell]:
  """Returns the cells of `METHOD_COLUMNS`."""
  facts = group.facts
  tau = facts.untie_step
  if tau is None:
    measured = groups_lib.summarize(
      run.untie_step for run in group.runs if run.untie_step is not None
    )
    tau = measured.mean if measured else None
  return {
    "method": groups_lib.method_name(facts),
    "unit": facts.unit,
    "untie_step": tau,
    "learning_rate": facts.learning_rate,
  }


def row(
  name: str, group: groups_lib.Group, comparison: groups_lib.Comparison
) -> dict[str, tables.Cell]:
  """Returns the cells of `COLUMNS` of a method that was run.

  Args:
    name: The title of the method in the comparison.
    group: Its runs.
    comparison: The setting.
  """
  facts, baseline = group.facts, comparison.baseline
  cells = method_cells(group) | {
    "rates_tried": len(comparison.rates[name]),
    "n": len(group.runs),
    "left_out": tables.left_out(group),
  }
  accuracy = group.statistic(runs_lib.ACCURACY)
  gain = group.difference(baseline, runs_lib.ACCURACY)
  cells |= _papers(facts, accuracy, gain)
  if not group.runs:
    return cells
  difference = group.difference(baseline, runs_lib.LOSS)
  return cells | {
    "pairs": difference.n if difference else None,
    "validation_loss": group.statistic(runs_lib.LOSS),
    "loss_difference": difference,
    "mlm_accuracy": accuracy,
    "mlm_gain": gain,
    "squad_average": group.statistic("SQuAD average"),
    "glue_average": group.statistic("GLUE average"),
    "steps": facts.train_steps,
    "tokens": facts.tokens,
    "seconds": groups_lib.summarize(
      run.seconds for run in group.runs if run.seconds is not None
    ),
  }


def absent_row(
  facts: facts_lib.Facts, method: str, unit_size: int
) -> dict[str, tables.Cell]:
  """Returns the row of a method of the paper that was not run.

  Args:
    facts: Of a run of the setting.
    method: The method.
    unit_size: The layers of a unit.
  """
  wanted = dataclasses.replace(
    facts,
    method=method,
    rule=facts_lib.FIXED,
    unit_size=unit_size,
    untie_step=round(0.1 * facts.train_steps),
  )
  return {
    "method": method,
    "unit": wanted.unit if method == facts_lib.SWE else None,
    "n": 0,
    **_papers(wanted, None, None),
  }


def paper_columns(
  metric: str,
  facts: facts_lib.Facts,
  measured: groups_lib.Statistic | None,
  gain: groups_lib.Statistic | None,
) -> Sequence:
  """Returns gain, gain - paper's, scale, score, score - paper's."""
  theirs = reference.gain(facts, metric)
  score = reference.score(facts, metric)
  return (
    theirs,
    gain.mean - theirs if gain and theirs is not None else None,
    reference.scale_title(reference.scale(facts))
    if theirs is not None or score is not None
    else None,
    score,
    measured.mean - score if measured and score is not None else None,
  )


def _papers(facts, measured, gain) -> dict[str, tables.Cell]:
  return dict(
    zip(
      (
        "paper_gain",
        "gain_minus_paper",
        "paper_scale",
        "paper_mlm",
        "mlm_minus_paper",
      ),
      paper_columns(runs_lib.ACCURACY, facts, measured, gain),
    )
  )
