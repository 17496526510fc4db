"""Every claim holds for another seed and is in the documentation."""

import pathlib
import pkgutil
from unittest import mock

from absl.testing import parameterized
import numpy as np

from swe_tf.theory import deep_linear
from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import proposition1
from swe_tf.theory import theorem2

_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "theory.md"
_OPTIONS = experiment.Options(seed=1)
# The experiments with a figure; the others only have claims.
_DRAWN = {"figure2", "proposition1", "depth"} | {
  f"theorem{i}" for i in (1, 2, 3)
}


def _small(module, **constants):
  return mock.patch.multiple(module, **constants)


class ExperimentsTest(parameterized.TestCase):
  @parameterized.parameters(
    name for name in experiment.EXPERIMENTS if name != "optimizer"
  )
  def test_claims_hold_and_are_documented(self, name):
    run = pkgutil.resolve_name(experiment.EXPERIMENTS[name])
    with _small(figure2, RATIO_SEEDS=100), _small(theorem2, TARGETS=3):
      outcome = run(_OPTIONS)
    self.assertEqual([claim for claim in outcome.claims if not claim.holds], [])
    self.assertEqual(outcome.drawing is not None, name in _DRAWN)
    documented = _DOCS.read_text(encoding="utf-8")
    for claim in outcome.claims:
      self.assertIn(claim.claim.replace("|", r"\|"), documented)

  def test_the_same_seed_gives_the_same_claims(self):
    with _small(proposition1, SEEDS=20):
      first, second = (proposition1.run(_OPTIONS).claims for _ in range(2))
    self.assertEqual(first, second)

  @parameterized.parameters(True, False)
  def test_only_a_symmetric_stem_ends_at_the_symmetric_part(self, symmetric):
    with _small(theorem2, TARGETS=2, NUM_STEPS=1000):
      _, targets = theorem2.draw_targets(np.random.default_rng(0))
      near = targets[3, :2]
      options = theorem2.symmetrized(_OPTIONS) if symmetric else _OPTIONS
      _, stem = theorem2.train(near, theorem2.UNTIE_STEP, options)
    to_symmetric = deep_linear.norm(stem - theorem2.symmetric_part(near))
    to_target = deep_linear.norm(stem - near)
    reached, missed = (
      (to_symmetric, to_target) if symmetric else (to_target, to_symmetric)
    )
    self.assertLess(reached.max(), 1e-6)
    self.assertGreater(missed.min(), 1e-2)
