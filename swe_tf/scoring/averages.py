"""The averages in the paper's tables, as its printed numbers imply them.

The paper does not define them. Its tables do: the SQuAD average is the mean of
the two F1 scores, and the GLUE average is the plain mean of the six GLUE rows
that the tables print. The latter is not the score of the GLUE site, which has
more tasks, and it counts MNLI twice.
"""

from collections.abc import Mapping

SQUAD_ROWS = ("squad_v1.1", "squad_v2.0")
GLUE_ROWS = ("AX", "MNLI-m", "MNLI-mm", "QNLI", "QQP", "SST-2")


def squad_average(scores: Mapping[str, float]) -> float:
  """Returns the mean F1 in percent of `SQUAD_ROWS`; ignores other keys.

  >>> squad_average({"squad_v1.1": 92.54, "squad_v2.0": 84.14})
  88.34
  """
  return _mean(scores, SQUAD_ROWS)


def glue_average(scores: Mapping[str, float]) -> float:
  """Returns the mean score in percent of `GLUE_ROWS`; ignores other keys.

  The paper uses Matthews' correlation for AX, F1 for QQP, accuracy otherwise.
  """
  return _mean(scores, GLUE_ROWS)


def _mean(scores, rows):
  missing = [row for row in rows if row not in scores]
  if missing:
    raise ValueError(
      f"The average needs {', '.join(rows)}, but {', '.join(missing)} is "
      "missing."
    )
  return sum(scores[row] for row in rows) / len(rows)
