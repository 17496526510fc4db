"""The sections of a report that have no table in the paper beside them."""

from collections.abc import Callable
from collections.abc import Sequence

from swe_tf.report import comparisons as rows_lib
from swe_tf.report import groups as groups_lib
from swe_tf.report import paper
from swe_tf.report import runs as runs_lib
from swe_tf.report import sections
from swe_tf.report import speed
from swe_tf.report import tables
from swe_tf.report.tables import Column

_SPEED_COLUMNS = (
  *rows_lib.METHOD_COLUMNS,
  Column("steps_ratio", "steps / baseline's steps", ".3f", spread=True),
  Column(
    "reverse_ratio",
    "baseline's steps to this final loss / its steps",
    ".3f",
    spread=True,
  ),
  Column("reached", "seeds that got there", "d"),
  Column("pairs", "seeds compared", "d"),
  Column("validation_points", "validations a run", "d"),
)
_RATE_COLUMNS = (
  *rows_lib.METHOD_COLUMNS,
  Column("n", "seeds", "d"),
  Column("left_out", "left out"),
  Column("validation_loss", "validation loss (nats)", ".4f", spread=True),
  Column("mlm_accuracy", "MLM accuracy (%)", ".2f", spread=True),
  Column("shown", "in the other tables"),
)
_SCORE_COLUMNS = (
  *rows_lib.METHOD_COLUMNS,
  Column("score", "score"),
  Column("measured", "measured (%)", ".2f", spread=True),
  Column("gain", "gain over baseline (points)", "+.2f", spread=True),
  Column("paper_gain", "paper's gain (points, at its scale)", "+.2f"),
  Column("gain_minus_paper", "gain - paper's gain", "+.2f"),
  Column("paper_scale", "paper's scale"),
  Column("paper_score", "paper's score (%)", ".2f"),
  Column("score_minus_paper", "score - paper's", "+.2f"),
)
_RUN_COLUMNS = (
  Column("run", "run"),
  *rows_lib.METHOD_COLUMNS,
  Column("seed", "seed"),
  Column("status", "status"),
  Column("step", "step", ",d"),
  Column("steps", "of", ",d"),
  Column("tokens", "tokens", ",d"),
  Column("seconds", "wall time (s)", ",.0f"),
  Column("validation_loss", "validation loss (nats)", ".4f"),
  Column("mlm_accuracy", "MLM accuracy (%)", ".2f"),
  Column("unigram_entropy", "entropy of single tokens", ".4f"),
)


def losses(
  found: sections.Comparisons, draw: Callable[..., tables.Figure]
) -> tables.Section:
  """Figure 3: the loss curves of each setting."""
  figures = []
  for comparison in found:
    chosen = [
      (name, group)
      for name, group in sections.main_groups(comparison).items()
      if group.runs
    ]
    if chosen:
      figures.append(draw(f"loss_{len(figures) + 1}", comparison, chosen))
  return tables.Section(
    "losses", "Loss curves (Figure 3)", [], "No finished runs.", (), figures
  )


def steps_ratios(found: sections.Comparisons) -> tables.Section:
  """The steps to the baseline's final validation loss."""
  made = []
  for comparison in found:
    baseline, rows = comparison.baseline, []
    for group in comparison.groups.values():
      measured = baseline and speed.measure(group, baseline)
      if measured:
        rows.append(
          rows_lib.method_cells(group)
          | {
            "steps_ratio": measured.ratio,
            "reverse_ratio": measured.reverse,
            "reached": measured.reached,
            "pairs": measured.pairs,
            "validation_points": measured.points,
          }
        )
    if len(rows) > 1:
      made.append(tables.Table(comparison.title, _SPEED_COLUMNS, rows))
  return tables.Section(
    "steps_ratio",
    "Steps to the baseline's final loss",
    [
      "The step at which the validation loss of a run first gets down to the "
      "final one of the baseline's run with the same seed, divided by the "
      "baseline's steps. Between two validations the curve is taken for a "
      "straight line. Empty unless all seeds get there. The next column is "
      "the same with the roles exchanged: for a method that is behind, the "
      "part of its steps after which the baseline was as far.",
      "The learning rate of both is fully decayed at the same number of "
      "steps, so that this is a reading in the middle of the schedule: it is "
      "not what a run that was scheduled to end there would need. The row of "
      "the baseline is the same reading of its own curve: below 1 it is "
      "noise.",
    ],
    "No setting has a baseline and another method that finished with the "
    "same seed.",
    made,
  )


def learning_rates(found: sections.Comparisons) -> tables.Section:
  """All peak learning rates, where a method was run with several."""
  made = []
  for comparison in found:
    rows = []
    for name, groups in comparison.rates.items():
      for group in groups if len(groups) > 1 else ():
        rows.append(
          rows_lib.method_cells(group)
          | {
            "n": len(group.runs),
            "left_out": tables.left_out(group),
            "validation_loss": group.statistic(runs_lib.LOSS),
            "mlm_accuracy": group.statistic(runs_lib.ACCURACY),
            "shown": "yes" if group is comparison.groups[name] else None,
          }
        )
    if rows:
      made.append(tables.Table(comparison.title, _RATE_COLUMNS, rows))
  return tables.Section(
    "learning_rates",
    "Learning rates",
    [
      "The other tables show, for each method, the rate with the least mean "
      "final validation loss among those with the most seeds. It was selected "
      "by the number that it is then judged by."
    ],
    "No method was run with two peak learning rates.",
    made,
  )


def finetuning(
  found: sections.Comparisons, notes: Sequence[str]
) -> tables.Section:
  """SQuAD and GLUE, score by score."""
  made = []
  for comparison in found:
    rows = []
    for group in comparison.groups.values():
      for metric in paper.METRICS[1:]:
        measured = group.statistic(metric)
        if measured is None:
          continue
        gain = group.difference(comparison.baseline, metric)
        rows.append(
          rows_lib.method_cells(group)
          | {"score": metric, "measured": measured, "gain": gain}
          | dict(
            zip(
              (
                "paper_gain",
                "gain_minus_paper",
                "paper_scale",
                "paper_score",
                "score_minus_paper",
              ),
              rows_lib.paper_columns(metric, group.facts, measured, gain),
            )
          )
        )
    if rows:
      made.append(tables.Table(comparison.title, _SCORE_COLUMNS, rows))
  return tables.Section(
    "finetuning",
    "Fine-tuning (SQuAD and GLUE)",
    [
      "Mean over pre-training seeds of what `swe finetune` selected. GLUE is "
      "scored on the dev sets here, on the test sets in the paper; AX on its "
      "diagnostic set. An average is empty unless all of its tasks are there.",
      *(f"Left out: {note}" for note in notes),
    ],
    "No results of swe finetune that belong to these runs."
    + "".join(f" Left out: {note}" for note in notes),
    made,
  )


def all_runs(found: Sequence[runs_lib.Run]) -> tables.Section:
  """Every run, whether it counts or not."""
  rows = [
    rows_lib.method_cells(groups_lib.Group(run.facts, [run], []))
    | {
      "run": run.name,
      "seed": "/".join(
        str(each) for each in dict.fromkeys(run.facts.seed) if each is not None
      ),
      "status": run.status,
      "step": run.step,
      "steps": run.facts.train_steps,
      "tokens": run.facts.tokens,
      "seconds": run.seconds,
      "validation_loss": run.scores.get(runs_lib.LOSS),
      "mlm_accuracy": run.scores.get(runs_lib.ACCURACY),
      "unigram_entropy": run.entropy,
    }
    for run in found
  ]
  return tables.Section(
    "runs",
    "All runs",
    [
      "Only runs with the status `finished` are in the other tables and in "
      "the figures."
    ],
    "No runs.",
    [tables.Table("", _RUN_COLUMNS, rows)],
  )
