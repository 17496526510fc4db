"""Wrong pieces of formulas and dynamics, and the claims they must turn red."""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import functools
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from swe_tf.theory import claims as claims_lib
from swe_tf.theory import deep_linear
from swe_tf.theory import depth
from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import proposition1
from swe_tf.theory import regression
from swe_tf.theory import theorem1
from swe_tf.theory import theorem2
from swe_tf.theory import theorem3

Run = Callable[[experiment.Options], Sequence[claims_lib.Claim]]
# What to replace: module, attribute, replacement.
Patch = tuple[Any, str, Any]


class _Mutation(NamedTuple):
  """One thing made wrong: patches, or options of the experiment."""

  run: Run
  red: list[str]  # How the claims that must fail begin.
  patches: tuple[Patch, ...]
  options: dict[str, Any]


def _mutation(run, red, *patches, **options):
  """Reads `red`: "source: start; start of the same source; other: start"."""
  starts, source = [], ""
  for item in red.split("; "):
    *named, start = item.split(": ", 1)
    source = named[0] if named else source
    starts.append(f"{source}: {start}")
  return _Mutation(run, starts, patches, options)


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


_SHORT_FACT3 = (
  (theorem3, "FACT3_DEPTHS", (2,)),
  (theorem3, "FACT3_STEPS", 2000),
)
_FEW_TARGETS = (theorem2, "TARGETS", 2)

FIGURE2 = part(figure2.run, (figure2, "SEEDS", 6))
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
LEMMA = part(lambda options: theorem3.lemma(options.rng(5), options))
THEOREM3 = part(
  lambda options: theorem3.theorem3(options.rng(5), options),
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
CONTINUOUS = part(lambda options: depth.continuous())
PRESCRIBED = part(lambda options: depth.prescribed(options.step_scale))


def scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
  return lambda *args, **kwargs: factor * function(*args, **kwargs)


def wrong_factor(module: Any, name: str, factor: float) -> Patch:
  return module, name, scaled(getattr(module, name), factor)


SUM = {"aggregate": np.sum}
SLOW = {"aggregate": scaled(np.mean, 0.25)}
HALF_IDENTITY = wrong_factor(deep_linear, "identity", 0.5)


_shared_solution = regression.shared_solution
_share = theorem3.share
_second_order_ratio = theorem3.second_order_ratio


def without_depth(u, w, num_layers, target):
  """The gradients of a network of two layers, whatever its depth."""
  del num_layers
  error = u * w - target
  return error, error * w, error * u


_NO_SYMMETRY = (theorem2, "symmetric_part", lambda matrices: matrices)
_NO_DEPTH = (depth, "gradient", without_depth)
_SWAPPED = ((depth, "ZAS", 1.0), (depth, "SHARING", 0.0))

MUTATIONS = {
  "figure2_sum_for_mean": _mutation(
    FIGURE2,
    "Figure 2: 100 shared steps reach; SWE fits the training set; Figure 2:"
    " SWE: mean test error; share of seeds; test error ratio",
    **SUM,
  ),
  "figure2_step_size": _mutation(
    FIGURE2,
    "Figure 2: GD fits the training set; Figure 2: GD: mean test error",
    step_scale=2.0,
  ),
  "figure2_predicted_ratio": _mutation(
    FIGURE2,
    "Figure 2: test error ratio",
    wrong_factor(figure2, "predicted_ratio", 0.7),
  ),
  "proposition1_few_samples": _mutation(
    PROPOSITION1,
    "Proposition 1: slope of ‖ŵ − w̄*‖ against n; n = L / 2",
    (
      *(regression, "shared_solution"),
      lambda p: _shared_solution(
        dataclasses.replace(p, inputs=p.inputs[:, :12])
      ),
    ),
  ),
  "proposition1_one_coordinate": _mutation(
    PROPOSITION1,
    "Proposition 1: slope of ‖ŵ − w̄*‖ against L; the constant is",
    (
      *(proposition1, "distances"),
      lambda p: np.abs(_shared_solution(p) - p.common)[..., 0],
    ),
  ),
  "decomposition_half_projection": _mutation(
    DECOMPOSITION,
    "section 3.1: ‖ŵ − w*‖² =; while shared",
    (
      *(proposition1, "project"),
      lambda w: w[..., : w.shape[-1] // 2].mean(axis=-1, keepdims=True),
    ),
  ),
  "decomposition_sum_projection": _mutation(
    DECOMPOSITION,
    "after Proposition 1: ‖w̄*‖ is Θ(√L); it needs a common component",
    (proposition1, "project", lambda w: w.sum(axis=-1, keepdims=True)),
  ),
  "decomposition_one_shared_step": _mutation(
    DECOMPOSITION,
    "section 3.1: sharing does not minimise",
    (figure2, "UNTIE_STEP", 1),
  ),
  "theorem1_slow_sharing": _mutation(THEOREM1, "Theorem 1: decay of R", **SLOW),
  "theorem1_sum_for_mean": _mutation(
    THEOREM1,
    "Remark: sharing: R'(0); Theorem 1: sharing is not what speeds it up; "
    "after Theorem 1: the rate repeated without the square",
    **SUM,
  ),
  "theorem1_half_identity": _mutation(
    THEOREM1,
    "Fact 1: ZAS; Remark: ZAS: R'(0); proof of Theorem 1: λmin",
    HALF_IDENTITY,
  ),
  "theorem2_step_size": _mutation(
    THEOREM2,
    "Theorem 2: Algorithm 1 does not force symmetry; no constant above 1; "
    "plain gradient descent; the same up to; the symmetric shared phase; "
    "untying then reaches",
    step_scale=8.0,
  ),
  "theorem2_no_symmetric_part": _mutation(
    THEOREM2_SHORT,
    "proof of Theorem 2: σmin(Φₛ) >= σmin(Φ) is the wrong way round",
    _NO_SYMMETRY,
  ),
  "theorem2_half_symmetric_part": _mutation(
    THEOREM2_SHORT,
    "proof of Theorem 2: what holds instead; ‖Φ - Φₛ‖ / ‖Φ - Φ₀‖",
    wrong_factor(theorem2, "symmetric_part", 0.5),
  ),
  "lemma_step_size": _mutation(
    LEMMA,
    "Lemma: largest step outside; Theorem 3, stronger: decay of R",
    step_scale=4.0,
  ),
  "theorem3_slow_sharing": _mutation(THEOREM3, "Theorem 3: decay of R", **SLOW),
  "fact3_rate": _mutation(
    FACT3, "Fact 3: ZAS: decay of R", (theorem3, "FACT3_RATE", 2.1)
  ),
  "fact3_all_layers_zero": _mutation(
    FACT3,
    "Fact 3: ZAS: decay of R",
    (deep_linear, "zero_asymmetric", scaled(deep_linear.identity, 0)),
  ),
  "slips_corrected": _mutation(
    THEOREM3_SLIPS,
    "proof of the Lemma: its display sums; proof of Theorem 3: I₂ is printed",
    # For L = 2, half the step size sums L terms, not L - 1.
    (theorem3, "share", lambda t, n, eta, *rest: _share(t, n, eta / 2, *rest)),
    # Near an eigenvalue of 1, phi^2 is phi^3.
    (theorem3, "second_order_ratio", lambda n, _: _second_order_ratio(n, 1.01)),
  ),
  "depth_two_layers_flow": _mutation(
    CONTINUOUS,
    "Remark: ZAS' rate is not 2 for long; Theorem 1: exponent in L",
    _NO_DEPTH,
  ),
  "depth_swapped_starts": _mutation(
    CONTINUOUS, "after Theorem 1: a small eigenvalue", *_SWAPPED
  ),
  "depth_two_layers_steps": _mutation(
    PRESCRIBED,
    "Fact 3: exponent in L of ZAS' steps at its step size; Theorem 3: "
    "exponent in L of the steps at its step size; steps / guaranteed steps",
    _NO_DEPTH,
  ),
  "depth_too_large_step": _mutation(
    PRESCRIBED,
    "Fact 3: the same for Φ = 0.001",
    (theorem3, "fact3_step_size", lambda norm, layers: np.power(layers, -0.5)),
  ),
}
