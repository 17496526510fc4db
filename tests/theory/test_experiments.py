"""Every claim holds for another seed, and fails when the method is broken."""

import dataclasses
import importlib
import pathlib
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from swe_tf.theory import experiment
from swe_tf.theory import figure2
from swe_tf.theory import plots
from swe_tf.theory import theorem1
from swe_tf.theory import theorem2
from swe_tf.theory import theorem3

_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "theory.md"
_OPTIONS = experiment.Options(seed=1)
# The experiments with a figure; the others only have claims.
_DRAWN = (
  "figure2",
  "proposition1",
  "theorem1",
  "theorem2",
  "theorem3",
  "depth",
)


def _small(module, **constants):
  return mock.patch.multiple(module, **constants)


def _failed(claims):
  """The sources of proved claims that do not hold."""
  return {claim.source for claim in claims if claim.proved and not claim.holds}


def _panel():
  return plots.panels(1)[1][0]


class ExperimentsTest(parameterized.TestCase):
  @parameterized.parameters(
    name for name in experiment.EXPERIMENTS if name != "optimizer"
  )
  def test_claims_hold_and_are_documented(self, name):
    module = importlib.import_module(experiment.EXPERIMENTS[name])
    with _small(figure2, RATIO_SEEDS=100), _small(theorem2, TARGETS=3):
      outcome = module.run(_OPTIONS)
    self.assertEqual([claim for claim in outcome.claims if not claim.holds], [])
    self.assertEqual(outcome.drawing is not None, name in _DRAWN)
    documented = _DOCS.read_text(encoding="utf-8")
    for claim in outcome.claims:
      self.assertIn(claim.claim.replace("|", r"\|"), documented)

  def test_the_same_seed_gives_the_same_claims(self):
    module = importlib.import_module(experiment.EXPERIMENTS["proposition1"])
    with _small(module, SEEDS=20):
      self.assertEqual(module.run(_OPTIONS).claims, module.run(_OPTIONS).claims)


class BrokenTest(parameterized.TestCase):
  """A claim is worth something only if it can turn red."""

  @parameterized.parameters(
    # The sum is L times the mean: regression diverges,
    ({"aggregate": np.sum}, {"Figure 2"}),
    # and above 2 / lambda_max, so does plain gradient descent.
    ({"step_scale": 2.0}, {"Figure 2"}),
  )
  def test_regression(self, broken, sources):
    with _small(figure2, SEEDS=4, RATIO_SEEDS=40), np.errstate(all="ignore"):
      outcome = figure2.run(dataclasses.replace(_OPTIONS, **broken))
    self.assertEqual(_failed(outcome.claims), sources)

  @parameterized.parameters(
    ({}, set()),
    ({"aggregate": np.sum}, {"Lemma", "Theorem 3, stronger"}),
    ({"step_scale": 2.0}, {"Lemma"}),
    ({"step_scale": 4.0}, {"Lemma", "Theorem 3, stronger"}),
  )
  def test_lemma(self, broken, sources):
    with np.errstate(all="ignore"):
      claims = theorem3.lemma(
        np.random.default_rng(0),
        dataclasses.replace(_OPTIONS, **broken),
        _panel(),
      )
    self.assertEqual(_failed(claims), sources)

  @parameterized.parameters((1.0, set()), (600.0, {"Theorem 3"}))
  def test_theorem3(self, step_scale, sources):
    with _small(theorem3, DEPTHS=(4,)), np.errstate(all="ignore"):
      claims = theorem3.theorem3(
        np.random.default_rng(0),
        dataclasses.replace(_OPTIONS, step_scale=step_scale),
        _panel(),
      )
    self.assertEqual(_failed(claims), sources)

  @parameterized.parameters((1.0, set()), (5e4, {"Fact 3"}))
  def test_fact3(self, step_scale, sources):
    with np.errstate(all="ignore"), _small(theorem3, FACT3_STEPS=200):
      claims = theorem3.fact3(
        np.random.default_rng(0),
        dataclasses.replace(_OPTIONS, step_scale=step_scale),
      )
    self.assertEqual(_failed(claims), sources)

  @parameterized.parameters((np.mean, set()), (np.sum, {"Remark"}))
  def test_remark(self, aggregate, sources):
    self.assertEqual(_failed(theorem1.remark(aggregate, _panel())), sources)

  def test_theorem2(self):
    with _small(theorem2, TARGETS=2), np.errstate(all="ignore"):
      outcome = theorem2.run(dataclasses.replace(_OPTIONS, step_scale=8.0))
    self.assertIn("Theorem 2", _failed(outcome.claims))

  @parameterized.parameters(True, False)
  def test_only_a_symmetric_stem_ends_at_the_symmetric_part(self, symmetric):
    with _small(theorem2, TARGETS=2, NUM_STEPS=1000):
      _, targets = theorem2.draw_targets(np.random.default_rng(0))
      near = targets[3, :2]
      options = theorem2.symmetrized(_OPTIONS) if symmetric else _OPTIONS
      _, stem = theorem2.train(near, theorem2.UNTIE_STEP, options)
    to_symmetric = theorem2.norm(stem - theorem2.symmetric_part(near))
    to_target = theorem2.norm(stem - near)
    reached, missed = (
      (to_symmetric, to_target) if symmetric else (to_target, to_symmetric)
    )
    self.assertLess(reached.max(), 1e-6)
    self.assertGreater(missed.min(), 1e-2)


if __name__ == "__main__":
  absltest.main()
