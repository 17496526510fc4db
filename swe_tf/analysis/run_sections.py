"""The sections of a report that have no counterpart in the paper's tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from swe_tf.analysis import comparisons
from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import paper
from swe_tf.analysis import rows as rows_lib
from swe_tf.analysis import speed
from swe_tf.analysis import tables
from swe_tf.analysis.tables import Column
from swe_tf.scoring import column

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
  rows_lib.SEEDS,
  rows_lib.LEFT_OUT,
  rows_lib.LOSS,
  rows_lib.ACCURACY,
  Column("shown", "in the other tables"),
)
_SCORE_COLUMNS = (
  *rows_lib.METHOD_COLUMNS,
  Column("score", "score"),
  Column("measured", "measured (%)", ".2f", spread=True),
  Column("gain", "gain over baseline (points)", "+.2f", spread=True),
  *rows_lib.PAPER_COLUMNS,
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

_Comparisons = Sequence[comparisons.Comparison]


def steps_ratios(found: _Comparisons) -> tables.Section:
  """The steps to the baseline's final validation loss."""
  return tables.Section(
    "steps_ratio",
    "Steps to the baseline's final loss",
    [
      "The step at which a run's validation loss first reaches the final loss "
      "of the baseline's run with the same seed, divided by the baseline's "
      "steps. The curve is interpolated linearly between validations. Empty "
      "unless all seeds get there. The next column swaps the roles: for a "
      "method that is behind, the fraction of its steps after which the "
      "baseline was as far.",
      "Both learning rates are fully decayed at the same number of steps, so "
      "this is read off in the middle of the schedule: it is not what a run "
      "scheduled to end there would need. The baseline's row is the same "
      "reading of its own curve: below 1, it is noise.",
    ],
    "No setting has a baseline and another method that finished with the "
    "same seed.",
    [
      table
      for table in _tables(found, _SPEED_COLUMNS, _speed_rows)
      if len(table.rows) > 1
    ],
  )


def learning_rates(found: _Comparisons) -> tables.Section:
  """All peak learning rates, where a method was run with several."""
  return tables.Section(
    "learning_rates",
    "Learning rates",
    [
      "The other tables show, for each method, the rate with the lowest mean "
      "final validation loss among those with the most seeds. It was selected "
      "by the same number that it is then judged by."
    ],
    "No method was run with two peak learning rates.",
    _tables(found, _RATE_COLUMNS, _rate_rows),
  )


def finetuning(found: _Comparisons, notes: Sequence[str]) -> tables.Section:
  """SQuAD and GLUE, score by score."""
  left_out = [f"Left out: {note}" for note in notes]
  absent = "No results of swe finetune that belong to these runs."
  return tables.Section(
    "finetuning",
    "Fine-tuning (SQuAD and GLUE)",
    [
      "Mean over pre-training seeds of what `swe finetune` selected. The paper "
      "reports SQuAD's dev sets and GLUE's test sets, and its numbers are "
      "shown next to those only: test scores come from the benchmark's site, "
      "through --site_scores. An average is shown only if all of its tasks "
      "have scores.",
      *left_out,
    ],
    " ".join([absent, *left_out]),
    _tables(found, _SCORE_COLUMNS, _score_rows),
  )


def all_runs(found: Iterable[found_runs.Run]) -> tables.Section:
  """Every run, whether it counts or not."""
  rows = [
    rows_lib.method_cells(groups_lib.Group(run.config, [run], []))
    | {
      "run": run.name,
      "seed": "/".join(
        str(each) for each in dict.fromkeys(run.config.seed) if each is not None
      ),
      "status": run.status,
      "step": run.step,
      "steps": run.config.train_steps,
      "tokens": run.config.tokens,
      "seconds": run.seconds,
      "validation_loss": run.scores.get(found_runs.LOSS),
      "mlm_accuracy": run.scores.get(found_runs.ACCURACY),
      "unigram_entropy": run.entropy,
    }
    for run in found
  ]
  return tables.Section(
    "runs",
    "All runs",
    [
      "Only runs with the status `finished` are in the other tables and the "
      "figures."
    ],
    "No runs.",
    [tables.Table("", _RUN_COLUMNS, rows)],
  )


def _tables(
  found: _Comparisons,
  columns: Sequence[Column],
  rows_of: Callable[[comparisons.Comparison], Iterable[tables.Row]],
) -> list[tables.Table]:
  """Returns a table for each setting that has rows."""
  made = [tables.Table(each.title, columns, [*rows_of(each)]) for each in found]
  return [table for table in made if table.rows]


def _speed_rows(comparison: comparisons.Comparison) -> Iterator[tables.Row]:
  baseline = comparison.baseline
  for group in comparison.groups.values():
    measured = baseline and speed.measure(group, baseline)
    if measured:
      yield rows_lib.method_cells(group) | vars(measured)


def _rate_rows(comparison: comparisons.Comparison) -> Iterator[tables.Row]:
  for name, groups in comparison.rates.items():
    for group in groups if len(groups) > 1 else ():
      is_shown = group is comparison.groups[name]
      yield rows_lib.result_cells(group) | {
        "shown": "yes" if is_shown else None
      }


def _score_rows(comparison: comparisons.Comparison) -> Iterator[tables.Row]:
  for group in comparison.groups.values():
    for metric in _score_names():
      measured = group.statistic(metric)
      if measured:
        gain = group.difference(comparison.baseline, metric)
        cells = rows_lib.method_cells(group) | {
          "score": metric,
          "measured": measured,
          "gain": gain,
        }
        if metric in paper.METRICS:
          cells |= rows_lib.paper_cells(
            group.config, metric, "score", measured, gain
          )
        yield cells


def _score_names() -> Iterator[str]:
  """Yields the rows of the paper, each after that of its dev set, if any."""
  for metric in paper.METRICS[1:]:
    if column.dev_name(metric) != metric:
      yield column.dev_name(metric)
    yield metric
