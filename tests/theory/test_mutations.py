"""Every claim turns red when what it checks is made wrong.

    pytest tests/theory -k mutation

Each mutation replaces one piece of a formula or of the dynamics, or breaks a
condition, and names the claims that hold without it and must fail with it. The
last test reads the table of docs/theory.md: no claim is without a mutation.
"""

import dataclasses
import functools
import pathlib

from absl.testing import parameterized

from swe_tf.theory import experiment
from tests.theory import mutants

_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "theory.md"
_OPTIONS = experiment.Options(seed=1)
MUTATIONS = mutants.MUTATIONS


def _verdicts(run: mutants.Run, options: experiment.Options) -> dict[str, bool]:
  return {f"{row.source}: {row.claim}": row.holds for row in run(options)}


# Many mutations are of the same experiment.
_unbroken = functools.cache(lambda run: _verdicts(run, _OPTIONS))


def _of(verdicts: dict[str, bool], start: str) -> list[bool]:
  return [holds for claim, holds in verdicts.items() if claim.startswith(start)]


class MutationTest(parameterized.TestCase):
  @parameterized.named_parameters(*MUTATIONS.items())
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
    starts = [start for entry in MUTATIONS.values() for start in entry.red]
    for source_and_kind, claim, *_ in rows:
      source = source_and_kind.rpartition(" : ")[0]
      text = f"{source}: {claim}"
      self.assertTrue(any(map(text.startswith, starts)), f"no mutation: {text}")
