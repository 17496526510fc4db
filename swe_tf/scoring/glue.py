"""The official GLUE metrics, in percent, from scikit-learn and scipy.

AX is scored by Matthews' correlation over its three classes, also known as R3.
The correlation with a constant is undefined, hence NaN, as in scipy.
"""

from collections.abc import Callable, Sequence
import functools
import warnings

import numpy as np
from scipy import stats
from sklearn import metrics

from swe_tf.data.glue import tasks as glue_tasks

Label = int | float


METRICS: dict[str, Callable[..., float]] = {
  "accuracy": metrics.accuracy_score,
  # The positive class is 1; F1 is 0 if it never occurs, as in Model Garden.
  "f1": functools.partial(metrics.f1_score, zero_division=0),
  "matthews_corrcoef": metrics.matthews_corrcoef,
  "pearson": lambda *arrays: stats.pearsonr(*arrays).statistic,
  "spearman": lambda *arrays: stats.spearmanr(*arrays).statistic,
}


def evaluate(
  task: glue_tasks.GlueTask,
  labels: Sequence[Label] | np.ndarray,
  predictions: Sequence[Label] | np.ndarray,
) -> dict[str, float]:
  """Returns a task's metrics in percent, first the one that selects a run.

  Labels are class ids, or scores for STS-B.

  >>> evaluate(glue_tasks.find_task("SST-2"), [0, 1, 1, 0], [0, 1, 0, 0])
  {'accuracy': 75.0}
  """
  if len(labels) != len(predictions) or not len(labels):
    raise ValueError(
      f"There must be as many predictions ({len(predictions)}) as labels "
      f"({len(labels)}), and at least one."
    )
  arrays = np.asarray(labels), np.asarray(predictions)
  with warnings.catch_warnings():
    # A constant input already shows as NaN.
    warnings.simplefilter("ignore", stats.ConstantInputWarning)
    return {key: 100.0 * float(METRICS[key](*arrays)) for key in task.metrics}
