"""Decides which of the paper's numbers may be shown beside a measured one.

A score of the paper depends on its model, data and steps, so it is shown only
beside a run with the same ones. The paper's gain over its own baseline is shown
beside the gain of a run of the same kind: the same method and unit, untied
after the same fraction of the steps. What the paper shows only in figures is
not included.
"""

from swe_tf.analysis import paper
from swe_tf.analysis import run_config
from swe_tf.methods import catalog
from swe_tf.modeling import sizes

_BATCH, _LENGTH, _VOCAB = 512, 512, 30522
_MODELS = {
  "base": "BERT-base",
  "large": "BERT-large",
  "24x768": "24 layers of 768",
  "24x1536": "24 layers of 1536",
}
_DATA = {"wikibooks": "Wikipedia + books", "xlnet": "XLNet's data"}
DEFAULT_SCALE = ("large", "wikibooks", 500_000)
UNIT_LAYERS = sizes.SIZES["large"].num_layers

_SCORES = {
  run: paper.scores(table, run)
  for table, runs in paper.TABLES.items()
  for run in runs
}
_STEPS = sorted({run.steps for run in _SCORES})
# The methods of the tables, the baseline first, and the units of Table 4.
METHODS = tuple(dict.fromkeys(run.method for run in _SCORES))
UNITS = tuple(
  run.unit_size for run in paper.TABLES[4] if run.method == catalog.SWE
)


def gain(config: run_config.RunConfig, metric: str) -> float | None:
  """Returns the paper's gain over its own baseline, in points.

  Args:
    config: The config of a measured run.
    metric: One of `paper.METRICS`.

  Returns:
    The gain at `scale(config)`; None if the paper has no run of this kind, or
    for the baseline itself.
  """
  kind = _kind(config)
  if kind is None or kind[0] == catalog.BASELINE:
    return None
  return gain_at(scale(config), *kind, metric)


def gain_at(
  where: tuple[str, str, int], method: str, unit_size: int, metric: str
) -> float | None:
  """Returns the paper's gain of a method at a scale; None if it has none."""
  scores = _SCORES.get(paper.Run(*where, method, unit_size))
  if scores is None:
    return None
  return scores[metric] - _SCORES[paper.Run(*where, catalog.BASELINE)][metric]


def score(config: run_config.RunConfig, metric: str) -> float | None:
  """Returns the paper's score of the same run; None if it has no such run."""
  kind = _kind(config)
  if kind is None or not _is_papers(config):
    return None
  return _SCORES.get(paper.Run(*_own(config), *kind), {}).get(metric)


def scale(config: run_config.RunConfig) -> tuple[str, str, int]:
  """Returns the model, data and steps of the paper that are nearest to a run.

  These are the run's own, if the paper has this kind of run there; otherwise
  BERT-large on Wikipedia and BookCorpus for 0.5M steps, where it has every
  kind.
  """
  kind, own = _kind(config), _own(config)
  return own if kind and paper.Run(*own, *kind) in _SCORES else DEFAULT_SCALE


def scale_title(where: tuple[str, str, int]) -> str:
  model, data, steps = where
  return f"{_MODELS[model]}, {_DATA[data]}, {steps / 1e6:g}M steps"


def _is_papers(config: run_config.RunConfig) -> bool:
  """Whether the model, the data and the budget are the paper's.

  The data counts as the paper's if its path contains the name.
  """
  return (
    config.encoder is not None
    and config.size in sizes.SIZES.values()
    and config.encoder.vocab_size == _VOCAB
    and config.batch_size == _BATCH
    and config.seq_length == _LENGTH
    and config.train_steps in _STEPS
    and any(name in config.data.lower() for name in _DATA)
  )


def _own(config: run_config.RunConfig) -> tuple[str, str, int]:
  """Returns the scale of a run, with the default where it is not the paper's.

  Only the depth and the width of the model count.
  """
  model, data, steps = DEFAULT_SCALE
  for name, size in sizes.SIZES.items():
    if (size.num_layers, size.hidden_size) == (config.num_layers, config.width):
      model = name
  for name in reversed(_DATA):
    if name in config.data.lower():
      data = name
  return (
    model,
    data,
    config.train_steps if config.train_steps in _STEPS else steps,
  )


def _kind(config: run_config.RunConfig) -> tuple[str, int] | None:
  """Returns the method and unit size if the paper has them, otherwise None."""
  if config.method not in METHODS or config.rule != catalog.FIXED:
    return None
  if config.method == catalog.BASELINE or config.unit_size is None:
    return config.method, 1
  if config.unit_size != 1 and config.num_layers != UNIT_LAYERS:
    return None  # Another number of units.
  if config.method == catalog.SWE and not config.has_papers_tau:
    return None
  return config.method, config.unit_size
