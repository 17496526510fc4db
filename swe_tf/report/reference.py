"""Which of the paper's numbers may stand beside a measured one.

A score of the paper is on the scale of its model, data and steps: it stands
only beside a run of the same. Its gain over its own baseline stands beside the
gain of a run that is the same in kind: the same method and unit, untied after
10% of the steps. What the paper shows in figures alone is no number here.
"""

from swe_tf.modeling import sizes
from swe_tf.report import facts as facts_lib
from swe_tf.report import paper

_BATCH, _LENGTH, _VOCAB = 512, 512, 30522
_STEPS = (500_000, 1_000_000)
_UNTIE_FRACTION = 0.1
_MODELS = {
  "base": "BERT-base",
  "large": "BERT-large",
  "24x768": "24 layers of 768",
  "24x1536": "24 layers of 1536",
}
_DATA = {"wikibooks": "Wikipedia + books", "xlnet": "XLNet's data"}

# The methods of Tables 1 and 5.
METHODS = (facts_lib.BASELINE, facts_lib.SWE, "net2net", "reparameterize")
UNITS = (12, 6, 4, 2, 1)
UNIT_LAYERS = 24
DEFAULT_SCALE = ("large", "wikibooks", 500_000)

_SCORES = {
  run: paper.scores(table, run)
  for table, runs in paper.TABLES.items()
  for run in runs
}


def gain(facts: facts_lib.Facts, metric: str) -> float | None:
  """Returns the paper's gain over its own baseline, in points.

  Args:
    facts: A measured run.
    metric: One of `paper.METRICS`.

  Returns:
    The gain at `scale(facts)`; None if the paper has no run of this kind, and
    for the baseline itself.
  """
  kind = _kind(facts)
  if kind is None or kind[0] == facts_lib.BASELINE:
    return None
  return gain_at(scale(facts), *kind, metric)


def gain_at(
  where: tuple, method: str, unit_size: int, metric: str
) -> float | None:
  """Returns the gain of a method of the paper; None if it has none there."""
  scores = _SCORES.get(paper.Run(*where, method, unit_size))
  if scores is None:
    return None
  return scores[metric] - _SCORES[paper.Run(*where, "baseline")][metric]


def score(facts: facts_lib.Facts, metric: str) -> float | None:
  """Returns the paper's score of the same run; None if it has no such run."""
  kind = _kind(facts)
  if kind is None or not is_papers(facts):
    return None
  return _SCORES.get(paper.Run(*_own(facts), *kind), {}).get(metric)


def scale(facts: facts_lib.Facts) -> tuple[str, str, int]:
  """Returns model, data and steps of the paper that are nearest to a run.

  The run's own, if the paper has this kind of run there; otherwise BERT-large
  on Wikipedia and BookCorpus for 0.5M steps, where it has every kind.
  """
  kind = _kind(facts)
  own = _own(facts)
  return own if kind and paper.Run(*own, *kind) in _SCORES else DEFAULT_SCALE


def scale_title(where: tuple[str, str, int]) -> str:
  model, data, steps = where
  return f"{_MODELS[model]}, {_DATA[data]}, {steps / 1e6:g}M steps"


def is_papers(facts: facts_lib.Facts) -> bool:
  """Whether model, data and budget are the paper's.

  The data is taken for the paper's if its path has the name in it.
  """
  size = sizes.SIZES.get(_model(facts))
  return (
    size is not None
    and all(
      facts.encoder.get(name) == value for name, value in vars(size).items()
    )
    and facts.encoder.get("vocab_size") == _VOCAB
    and facts.batch_size == _BATCH
    and facts.seq_length == _LENGTH
    and facts.train_steps in _STEPS
    and any(name in facts.data.lower() for name in _DATA)
  )


def is_papers_sharing(facts: facts_lib.Facts) -> bool:
  """Whether weights are shared for 10% of the steps, then all untied."""
  return facts.rule == facts_lib.FIXED and facts.untie_step == round(
    _UNTIE_FRACTION * facts.train_steps
  )


def _own(facts: facts_lib.Facts) -> tuple[str, str, int]:
  data = next(
    (name for name in _DATA if name in facts.data.lower()), "wikibooks"
  )
  steps = facts.train_steps if facts.train_steps in _STEPS else _STEPS[0]
  return _model(facts), data, steps


def _model(facts: facts_lib.Facts) -> str:
  return next(
    (
      name
      for name, size in sizes.SIZES.items()
      if (size.num_layers, size.hidden_size) == (facts.num_layers, facts.width)
    ),
    "large",
  )


def _kind(facts: facts_lib.Facts) -> tuple[str, int] | None:
  """Returns method and unit size as the paper has them; None if it does not."""
  if facts.method not in METHODS or facts.rule != facts_lib.FIXED:
    return None
  if facts.method in (facts_lib.BASELINE, "net2net"):
    return facts.method, 1
  if facts.unit_size != 1 and facts.num_layers != UNIT_LAYERS:
    return None  # Another number of units.
  if facts.method == facts_lib.SWE and not is_papers_sharing(facts):
    return None
  return facts.method, facts.unit_size
