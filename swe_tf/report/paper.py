"""Every number of the paper's Tables 1 to 5, as data.

A test reads them off the paper's source. Scores are in percent; what they mean
and how the averages are formed is in `swe_tf.scoring`. Imports no TensorFlow.
"""

import dataclasses

METRICS = ("MLM", "SQuAD average", "GLUE average", "squad_v1.1", "squad_v2.0",
           "AX", "MNLI-m", "MNLI-mm", "QNLI", "QQP", "SST-2")


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of the paper: a column of its tables.

  Attributes:
    model: `base`, `large`, or layers and width of another.
    data: `wikibooks` or `xlnet`.
    steps: The steps of pre-training.
    method: `baseline`, `swe`, `net2net` or `reparameterize`.
    unit_size: The layers of a unit, for `swe`.
  """
  model: str
  data: str
  steps: int
  method: str
  unit_size: int = 1


# By table: the scores of each run, in the order of METRICS.
TABLES: dict[int, dict[Run, tuple[float, ...]]] = {
    1: {
        Run("large", "wikibooks", 500_000, "baseline"): (
            73.66, 87.27, 78.17, 91.54, 82.99,
            39.0, 85.9, 85.4, 92.3, 72.1, 94.3),
        Run("large", "wikibooks", 500_000, "swe"): (
            73.92, 88.34, 78.98, 92.54, 84.14,
            40.1, 87.2, 86.7, 93.4, 71.7, 94.8),
        Run("large", "wikibooks", 1_000_000, "baseline"): (
            74.98, 88.82, 79.30, 92.58, 85.06,
            42.3, 86.9, 86.1, 93.5, 72.2, 94.8),
        Run("large", "wikibooks", 1_000_000, "swe"): (
            75.09, 89.51, 80.03, 92.81, 86.20,
            43.8, 87.8, 87.4, 94.0, 72.3, 94.9),
        Run("large", "xlnet", 500_000, "baseline"): (
            70.06, 88.85, 79.53, 92.41, 85.28,
            43.2, 87.3, 87.4, 91.9, 71.7, 95.7),
        Run("large", "xlnet", 500_000, "swe"): (
            70.18, 89.20, 79.97, 92.82, 85.57,
            43.7, 88.4, 87.4, 92.8, 72.1, 95.4),
        Run("large", "xlnet", 1_000_000, "baseline"): (
            71.75, 89.93, 80.20, 93.37, 86.49,
            44.2, 88.6, 87.9, 92.3, 72.3, 95.9),
        Run("large", "xlnet", 1_000_000, "swe"): (
            71.76, 90.09, 80.83, 93.55, 86.63,
            46.8, 88.8, 88.5, 93.1, 72.1, 95.7),
    },
    2: {
        Run("24x768", "wikibooks", 500_000, "baseline"): (
            71.68, 86.65, 77.30, 91.29, 82.00,
            36.4, 85.4, 85.0, 92.0, 71.5, 93.5),
        Run("24x768", "wikibooks", 500_000, "swe"): (
            72.03, 87.00, 77.98, 91.51, 82.48,
            38.8, 86.0, 85.9, 92.5, 71.5, 93.2),
        Run("24x768", "wikibooks", 1_000_000, "baseline"): (
            73.00, 87.38, 78.13, 91.95, 82.80,
            37.8, 86.1, 86.0, 93.0, 71.8, 94.1),
        Run("24x768", "wikibooks", 1_000_000, "swe"): (
            73.10, 87.97, 79.28, 91.99, 83.95,
            42.9, 87.0, 86.6, 92.8, 72.0, 94.4),
        Run("24x1536", "wikibooks", 500_000, "baseline"): (
            75.61, 88.32, 79.00, 92.29, 84.35,
            41.7, 87.1, 86.5, 92.9, 71.8, 94.0),
        Run("24x1536", "wikibooks", 500_000, "swe"): (
            75.79, 89.68, 80.08, 93.19, 86.16,
            44.2, 87.8, 87.4, 93.6, 71.9, 95.6),
        Run("24x1536", "wikibooks", 1_000_000, "baseline"): (
            77.23, 89.38, 80.37, 92.76, 86.00,
            44.6, 88.1, 87.2, 94.1, 72.6, 95.6),
        Run("24x1536", "wikibooks", 1_000_000, "swe"): (
            77.16, 89.79, 80.88, 93.30, 86.28,
            46.7, 88.5, 87.8, 94.1, 72.3, 95.9),
    },
    3: {
        Run("base", "wikibooks", 500_000, "baseline"): (
            68.74, 82.06, 76.17, 88.29, 75.82,
            35.3, 83.9, 83.0, 90.9, 70.9, 93.0),
        Run("base", "wikibooks", 500_000, "swe"): (
            69.21, 82.91, 76.72, 89.23, 76.59,
            36.2, 84.3, 83.5, 91.6, 71.2, 93.5),
        Run("base", "wikibooks", 1_000_000, "baseline"): (
            69.86, 85.01, 76.40, 90.32, 79.69,
            34.7, 84.4, 83.5, 91.5, 71.4, 92.9),
        Run("base", "wikibooks", 1_000_000, "swe"): (
            70.16, 85.50, 77.55, 90.40, 80.59,
            36.4, 85.2, 84.9, 92.9, 71.5, 94.4),
    },
    4: {
        Run("large", "wikibooks", 500_000, "baseline"): (
            73.66, 87.27, 78.17, 91.54, 82.99,
            39.0, 85.9, 85.4, 92.3, 72.1, 94.3),
        Run("large", "wikibooks", 500_000, "swe", 12): (
            73.82, 87.96, 78.87, 92.18, 83.74,
            40.7, 86.9, 85.8, 93.1, 72.0, 94.7),
        Run("large", "wikibooks", 500_000, "swe", 6): (
            73.99, 88.59, 79.12, 92.62, 84.56,
            40.3, 87.9, 87.0, 93.2, 72.0, 94.3),
        Run("large", "wikibooks", 500_000, "swe", 4): (
            73.90, 89.17, 78.82, 92.52, 85.82,
            40.2, 87.0, 86.4, 92.9, 71.6, 94.8),
        Run("large", "wikibooks", 500_000, "swe", 2): (
            74.16, 88.75, 79.47, 92.44, 85.06,
            43.0, 87.1, 86.4, 93.8, 71.8, 94.7),
        Run("large", "wikibooks", 500_000, "swe", 1): (
            73.92, 88.34, 78.98, 92.54, 84.14,
            40.1, 87.2, 86.7, 93.4, 71.7, 94.8),
        Run("large", "wikibooks", 1_000_000, "baseline"): (
            74.98, 88.82, 79.30, 92.58, 85.06,
            42.3, 86.9, 86.1, 93.5, 72.2, 94.8),
    },
    5: {
        Run("large", "wikibooks", 500_000, "net2net"): (
            72.34, 86.23, 77.55, 90.72, 81.73,
            37.7, 85.1, 84.5, 92.2, 71.3, 94.5),
        Run("large", "wikibooks", 500_000, "reparameterize"): (
            73.57, 87.57, 78.35, 91.55, 83.59,
            39.3, 86.5, 85.7, 92.2, 72.2, 94.2),
        Run("large", "wikibooks", 500_000, "swe"): (
            73.92, 88.34, 78.98, 92.54, 84.14,
            40.1, 87.2, 86.7, 93.4, 71.7, 94.8),
    },
}


def scores(table: int, run: Run) -> dict[str, float]:
  """Returns the scores of a run by metric."""
  return dict(zip(METRICS, TABLES[table][run]))
