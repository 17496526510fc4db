"""Wrong pieces of formulas and dynamics, and small experiments to put them in.

For `mutations_*`, which say which claims each of them must turn red.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import functools
from typing import Any
from unittest import mock

import numpy as np

from swe_tf.theory import claims as claims_lib
from swe_tf.theory import control
from swe_tf.theory import deep_linear
from swe_tf.theory import depth
from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import optimizer_check
from swe_tf.theory import plots
from swe_tf.theory import proposition1
from swe_tf.theory import regression
from swe_tf.theory import theorem1
from swe_tf.theory import theorem2
from swe_tf.theory import theorem3

Run = Callable[[experiment.Options], Sequence[claims_lib.Claim]]
# What to replace: module, attribute, replacement.
Patch = tuple[Any, str, Any]


@dataclasses.dataclass(frozen=True)
class Mutation:
  """One thing made wrong.

  Attributes:
    run: the experiment, or the part of it that is affected.
    red: how the claims that must fail begin, as `source: claim`.
    patches: what to replace.
    options: fields of the options to replace.
  """

  run: Run
  red: tuple[str, ...]
  patches: tuple[Patch, ...] = ()
  options: dict[str, Any] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def patched(*patches: Patch):
  """Replaces attributes; a run that diverges, on purpose, does not warn."""
  with contextlib.ExitStack() as stack:
    stack.enter_context(np.errstate(all="ignore"))
    for module, name, value in patches:
      stack.enter_context(mock.patch.object(module, name, value))
    yield


def part(run: Callable[[experiment.Options], Any], *sizes: Patch) -> Run:
  """An experiment, or a part of it, on small sizes."""

  @functools.wraps(run)
  def small(options):
    with patched(*sizes):
      outcome = run(options)
    return getattr(outcome, "claims", outcome)

  return small


def _panel():
  return plots.panels(1)[1][0]


_SHORT_FACT3 = (
  (theorem3, "FACT3_DEPTHS", (2,)),
  (theorem3, "FACT3_STEPS", 2000),
)
_FEW_TARGETS = (theorem2, "TARGETS", 2)

FIGURE2 = part(figure2.run, (figure2, "SEEDS", 6), (figure2, "RATIO_SEEDS", 40))
PROPOSITION1 = part(proposition1.run, (proposition1, "SEEDS", 200))
DECOMPOSITION = part(
  proposition1.run_decomposition, (proposition1, "TRACKED_SEEDS", 24)
)
THEOREM1 = part(theorem1.run, (theorem1, "DEPTHS", (2, 4)))
THEOREM2 = part(theorem2.run, _FEW_TARGETS)
# Long enough for what is said of the shared phase, up to a few digits.
THEOREM2_SHORT = part(
  theorem2.run,
  _FEW_TARGETS,
  (theorem2, "NUM_STEPS", 250),
  (theorem2, "UNTIE_STEP", 200),
)
THEOREM2_PROOF = part(theorem2.run_proof, _FEW_TARGETS)
LEMMA = part(lambda options: theorem3.lemma(options.rng(5), options, _panel()))
THEOREM3 = part(
  lambda options: theorem3.theorem3(options.rng(5), options, _panel()),
  (theorem3, "DEPTHS", (4,)),
)
FACT3 = part(
  lambda options: theorem3.fact3(options.rng(5), options), *_SHORT_FACT3
)
THEOREM3_SLIPS = part(
  lambda options: theorem3.run(options).claims[-2:],
  *_SHORT_FACT3,
  (theorem3, "DEPTHS", (2,)),
)
THEOREM3_PROOF = part(theorem3.run_proof)
CONTINUOUS = part(lambda options: depth.continuous(_panel()))
PRESCRIBED = part(
  lambda options: depth.prescribed(options.step_scale, _panel())
)
FREE = part(lambda options: depth.free(options.step_scale, _panel()))
CONTROL = part(control.run, _FEW_TARGETS)
OPTIMIZER = part(
  optimizer_check.run,
  (figure2, "NUM_LAYERS", 12),
  (figure2, "NUM_SAMPLES", 8),
  (figure2, "NUM_STEPS", 40),
  (figure2, "UNTIE_STEP", 15),
  (figure2, "STEP_SIZE", 0.05),
)


def scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
  """The same function with a wrong factor."""
  return lambda *args, **kwargs: factor * function(*args, **kwargs)


def wrong_factor(module: Any, name: str, factor: float) -> Patch:
  """Replaces a function by itself with a wrong factor."""
  return module, name, scaled(getattr(module, name), factor)


SUM = {"aggregate": np.sum}
SLOW = {"aggregate": scaled(np.mean, 0.25)}
HALF_IDENTITY = wrong_factor(deep_linear, "identity", 0.5)


_train = optimizer_check.train
_shared_solution = regression.shared_solution
_positive_definite = deep_linear.positive_definite
_share = theorem3.share
_second_order_ratio = theorem3.second_order_ratio


def few_samples(problem):
  """Least squares that never looks at more than 12 samples."""
  few = regression.Problem(problem.weights, problem.inputs[:, :12])
  return _shared_solution(few)


def one_coordinate(problem):
  """The distance in one coordinate, where there are L."""
  return np.abs(_shared_solution(problem) - problem.common)[..., 0]


def half_projection(weights):
  """The mean of the first half of the weights only."""
  half = weights[..., : weights.shape[-1] // 2]
  return half.mean(axis=-1, keepdims=True)


def sum_projection(weights):
  """The sum of the weights, where their mean is due."""
  return weights.sum(axis=-1, keepdims=True)


def without_depth(u, w, num_layers, target):
  """The gradients of a network of two layers, whatever its depth."""
  del num_layers
  error = u * w - target
  return error, error * w, error * u


def not_symmetric(*args, **kwargs):
  """Targets that are not symmetric."""
  targets = _positive_definite(*args, **kwargs)
  return targets + 0.3 * np.triu(np.ones(targets.shape[-2:]), 1)


def half_the_step(targets, num_layers, step_size, *others):
  """Sharing at half the step size, which for L = 2 sums L terms, not L - 1."""
  return _share(targets, num_layers, step_size / 2, *others)


def near_one(num_layers, eigenvalue):
  """The ratio of I_2 at an eigenvalue near 1, where phi^2 is phi^3."""
  del eigenvalue
  return _second_order_ratio(num_layers, 1.01)


def untied_after(untie_step):
  """Training by the optimizer, untied after another step than asked for."""

  def train(layers, loss, schedule):
    other = dataclasses.replace(schedule, untie_step=untie_step)
    return _train(layers, loss, other)

  return train
