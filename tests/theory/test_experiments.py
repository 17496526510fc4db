"""Claims hold for another seed, are documented, and red when made wrong.

    pytest tests/theory -k mutation

Each mutation replaces one piece of a formula or of the dynamics, or breaks a
condition, and names the claims that hold without it and must fail with it. No
claim in the table of docs/theory.md is without a mutation.
"""

import dataclasses
import functools
import pathlib
import pkgutil
from unittest import mock

from absl.testing import parameterized

from swe_tf.theory import experiment
from swe_tf.theory import proposition1
from swe_tf.theory import theorem2
from tests.theory import mutants

_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "theory.md"
_OPTIONS = experiment.Options(seed=1)


class ExperimentsTest(parameterized.TestCase):
  @parameterized.parameters(*experiment.EXPERIMENTS)
  def test_claims_hold_and_are_documented(self, name):
    run = pkgutil.resolve_name(experiment.EXPERIMENTS[name])
    with mock.patch.object(theorem2, "TARGETS", 3):
      outcome = run(_OPTIONS)
    self.assertEqual([claim for claim in outcome.claims if not claim.holds], [])
    self.assertEqual(outcome.drawing is not None, name == "figure2")
    documented = _DOCS.read_text(encoding="utf-8")
    for claim in outcome.claims:
      self.assertIn(claim.claim.replace("|", r"\|"), documented)

  def test_the_same_seed_gives_the_same_claims(self):
    with mock.patch.object(proposition1, "SEEDS", 20):
      first, second = (proposition1.run(_OPTIONS).claims for _ in range(2))
    self.assertEqual(first, second)


def _verdicts(run: mutants.Run, options: experiment.Options) -> dict[str, bool]:
  return {f"{row.source}: {row.claim}": row.holds for row in run(options)}


# Many mutations are of the same experiment.
_unbroken = functools.cache(lambda run: _verdicts(run, _OPTIONS))


def _of(verdicts: dict[str, bool], start: str) -> list[bool]:
  return [holds for claim, holds in verdicts.items() if claim.startswith(start)]


class MutationTest(parameterized.TestCase):
  @parameterized.named_parameters(*mutants.MUTATIONS.items())
  def test_mutation(self, mutation):
    options = dataclasses.replace(_OPTIONS, **mutation.options)
    unbroken = _unbroken(mutation.run)
    with mutants.patched(*mutation.patches):
      broken = _verdicts(mutation.run, options)
    for start in mutation.red:
      self.assertEqual(_of(unbroken, start), [True], f"unbroken: {start}")
      self.assertEqual(_of(broken, start), [False], f"broken: {start}")

  def test_mutation_for_every_claim(self):
    table = _DOCS.read_text(encoding="utf-8").split("## All claims")[1]
    rows = [
      line.replace(r"\|", "¦")[2:].replace("|", ":", 1).split(" | ")
      for line in table.splitlines()
      if line.endswith(("| yes |", "| NO |"))
    ]
    self.assertNotEmpty(rows)
    starts = [
      start for each in mutants.MUTATIONS.values() for start in each.red
    ]
    for source_and_kind, claim, *_ in rows:
      source = source_and_kind.rpartition(" : ")[0]
      text = f"{source}: {claim}"
      self.assertTrue(any(map(text.startswith, starts)), f"no mutation: {text}")
