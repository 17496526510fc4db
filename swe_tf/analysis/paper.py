"""Every number of the paper's Tables 1 to 5, from paper_tables.csv.

A test compares them with the paper's source. Scores are in percent;
`swe_tf.scoring` defines them and their averages. Imports no TensorFlow.
"""

import csv
import dataclasses
from importlib import resources


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of the paper: a column of its tables.

  Attributes:
    model: `base`, `large`, or layers and width, such as `24x768`.
    data: `wikibooks` or `xlnet`.
    steps: The number of pre-training steps.
    method: `baseline`, `swe`, `net2net` or `reparameterize`.
    unit_size: The number of layers in a unit, for `swe`.
  """

  model: str
  data: str
  steps: int
  method: str
  unit_size: int = 1


_HEAD, *_LINES = csv.reader(
  (resources.files(__package__) / "paper_tables.csv").read_text().splitlines()
)
# The scores follow the number of the table and the fields of the run.
_FIRST = 1 + len(dataclasses.fields(Run))

METRICS: tuple[str, ...] = tuple(_HEAD[_FIRST:])
# By table: the scores of each run, in the order of METRICS.
TABLES: dict[int, dict[Run, tuple[float, ...]]] = {}
for _table, _model, _data, _steps, _method, _unit_size, *_numbers in _LINES:
  _run = Run(_model, _data, int(_steps), _method, int(_unit_size))
  TABLES.setdefault(int(_table), {})[_run] = tuple(map(float, _numbers))


def scores(table: int, run: Run) -> dict[str, float]:
  """Returns the scores of a run by metric."""
  return dict(zip(METRICS, TABLES[table][run]))
