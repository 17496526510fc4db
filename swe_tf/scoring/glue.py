"""The official GLUE metrics, in percent, by scikit-learn and scipy.

AX is scored by Matthews' correlation over its three classes, also known as R3.
The correlation with a constant does not exist: it is NaN, as in scipy.
"""

from collections.abc import Callable, Sequence
import warnings

import numpy as np
from scipy import stats
from sklearn import metrics

from swe_tf.data.glue import tasks as glue_tasks

Label = int | float


def _correlation(function):

  def percent(labels, predictions):
    with warnings.catch_warnings():
      # Constant input: the NaN says it.
      warnings.simplefilter("ignore", stats.ConstantInputWarning)
      return function(labels, predictions).statistic

  return percent


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
  "accuracy": metrics.accuracy_score,
  # The positive class is 1; without one anywhere F1 is 0, as in Model Garden.
  "f1": lambda labels, predictions: metrics.f1_score(
    labels, predictions, zero_division=0
  ),
  "matthews_corrcoef": metrics.matthews_corrcoef,
  "pearson": _correlation(stats.pearsonr),
  "spearman": _correlation(stats.spearmanr),
}


def evaluate(
  task: glue_tasks.GlueTask,
  labels: Sequence[Label] | np.ndarray,
  predictions: Sequence[Label] | np.ndarray,
) -> dict[str, float]:
  """Scores predictions by the metrics of a task.

  Args:
    task: The task.
    labels: The true class ids, or scores for STS-B.
    predictions: The predicted ones, in the same order.

  Returns:
    The metrics in percent, the one that selects a run first.

  Raises:
    ValueError: If there is nothing to score, or the lengths differ.

  Example:

  >>> evaluate(glue_tasks.find_task("SST-2"), [0, 1, 1, 0], [0, 1, 0, 0])
  {'accuracy': 75.0}
  """
  if len(labels) != len(predictions) or not len(labels):
    raise ValueError(
      f"There must be as many predictions ({len(predictions)}) as labels "
      f"({len(labels)}), and at least one."
    )
  arrays = np.asarray(labels), np.asarray(predictions)
  return {name: 100.0 * float(METRICS[name](*arrays)) for name in task.metrics}
