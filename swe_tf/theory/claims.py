"""What a claim is, how it is judged, written and shown.

A claim compares one measured number with what theory predicts for it:

    paper("Lemma: largest eigenvalue of W").at_most(1.0, measured)

The comparison is made here and nowhere else, so that a NaN from a diverged run
can never pass. Not for experiments: they only create claims.
"""

from collections.abc import Sequence
import dataclasses
import functools
import json
import math
from typing import Any

import rich.console
import rich.table

from swe_tf import files


@dataclasses.dataclass(frozen=True)
class Claim:
  """One row of the table `claim | predicted | measured | holds`.

  Attributes:
    source: the statement of the paper that the claim belongs to.
    claim: what is claimed of the measured number, in one line.
    predicted: the value or the bound, as text.
    measured: the number that the experiment gave.
    holds: whether `measured` agrees with `predicted`.
    kind: `paper`, `derived`, `slip` or `observed`.
  """

  source: str
  claim: str
  predicted: str
  measured: float
  holds: bool
  kind: str

  @property
  def proved(self) -> bool:
    """Whether a failure means that code or theorem is wrong."""
    return self.kind != "observed"

  @property
  def cells(self) -> tuple[str, str, str, str, str]:
    """The row as people read it, without the kind."""
    verdict = "yes" if self.holds else "NO"
    number = f"{self.measured:.4g}"
    return self.source, self.claim, self.predicted, number, verdict


@dataclasses.dataclass(frozen=True)
class Statement:
  """What is claimed, before a number is judged.

  Attributes:
    kind: where the truth of the claim comes from.
    text: `source: claim`.
  """

  kind: str
  text: str

  def _judged(self, predicted: str, measured, holds) -> Claim:
    source, _, claim = self.text.partition(": ")
    number = float(measured)
    return Claim(source, claim, predicted, number, bool(holds), self.kind)

  def at_most(self, bound, measured) -> Claim:
    """Claims `measured <= bound`."""
    return self._judged(f"<= {bound:.4g}", measured, measured <= bound)

  def at_least(self, bound, measured) -> Claim:
    """Claims `measured >= bound`."""
    return self._judged(f">= {bound:.4g}", measured, measured >= bound)

  def close(self, expected, tolerance, measured) -> Claim:
    """Claims `|measured - expected| <= tolerance`."""
    predicted = f"{expected:.4g} ± {tolerance:.2g}"
    holds = abs(measured - expected) <= tolerance
    return self._judged(predicted, measured, holds)


# Proved in the paper.
paper = functools.partial(Statement, "paper")
# Proved in docs/theory_proofs.md.
derived = functools.partial(Statement, "derived")
# Contradicts a printed statement, by a counter-example.
slip = functools.partial(Statement, "slip")
# Measured, with no proof.
observed = functools.partial(Statement, "observed")


def _row(claim: Claim) -> dict[str, Any]:
  row = dataclasses.asdict(claim) | {"proved": claim.proved}
  # JSON has no NaN or infinity; a diverged run must still be readable.
  if not math.isfinite(claim.measured):
    row["measured"] = str(claim.measured)
  return row


def write(claims: Sequence[Claim], output_dir: files.Path) -> None:
  """Writes `claims.json` and, for people, `claims.md`."""
  rows = [_row(claim) for claim in claims]
  text = json.dumps(rows, indent=2, ensure_ascii=False)
  files.write_text(output_dir / "claims.json", text + "\n")
  table = "| source | kind | claim | predicted | measured | holds |\n"
  table += "|---|---|---|---|---|---|\n"
  for claim in claims:
    source, *others = (cell.replace("|", r"\|") for cell in claim.cells)
    table += f"| {' | '.join((source, claim.kind, *others))} |\n"
  files.write_text(output_dir / "claims.md", table)


def show(claims: Sequence[Claim], console: rich.console.Console) -> None:
  """Prints the table, failures in red."""
  table = rich.table.Table("source", "claim", "predicted", "measured", "holds")
  for claim in claims:
    table.add_row(*claim.cells, style=None if claim.holds else "bold red")
  console.print(table)
