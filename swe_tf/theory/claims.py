"""What a claim is, how it is judged, written and shown.

A claim compares one measured number with what theory predicts for it. The
comparison is made here and nowhere else, so that a NaN from a diverged run
can never pass. Not for experiments: they only create claims.
"""

from collections.abc import Sequence
import dataclasses
import json
import math
import pathlib
from typing import Any

import rich.console
import rich.table

# Where the truth of a claim comes from.
PAPER = "paper"  # Proved in the paper.
DERIVED = "derived"  # Proved in docs/theory.md.
SLIP = "slip"  # Contradicts a printed statement, by a counter-example.
OBSERVED = "observed"  # Measured, with no proof.


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
    return self.kind != OBSERVED


def at_most(kind: str, source: str, claim: str, bound, measured) -> Claim:
  """Claims `measured <= bound`."""
  return Claim(
    source,
    claim,
    f"<= {bound:.4g}",
    float(measured),
    bool(measured <= bound),
    kind,
  )


def at_least(kind: str, source: str, claim: str, bound, measured) -> Claim:
  """Claims `measured >= bound`."""
  return Claim(
    source,
    claim,
    f">= {bound:.4g}",
    float(measured),
    bool(measured >= bound),
    kind,
  )


def close(
  kind: str, source: str, claim: str, expected, tolerance, measured
) -> Claim:
  """Claims `|measured - expected| <= tolerance`."""
  return Claim(
    source,
    claim,
    f"{expected:.4g} ± {tolerance:.2g}",
    float(measured),
    bool(abs(measured - expected) <= tolerance),
    kind,
  )


def _row(claim: Claim) -> dict[str, Any]:
  row = dataclasses.asdict(claim) | {"proved": claim.proved}
  # JSON has no NaN or infinity; a diverged run must still be readable.
  if not math.isfinite(claim.measured):
    row["measured"] = str(claim.measured)
  return row


def _verdict(claim: Claim) -> str:
  return "yes" if claim.holds else "NO"


def write(claims: Sequence[Claim], output_dir: pathlib.Path) -> None:
  """Writes `claims.json` and, for people, `claims.md`."""
  rows = [_row(claim) for claim in claims]
  (output_dir / "claims.json").write_text(
    json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
  )
  lines = [
    "| source | kind | claim | predicted | measured | holds |",
    "|---|---|---|---|---|---|",
  ]
  for claim in claims:
    text = claim.claim.replace("|", r"\|")
    lines.append(
      f"| {claim.source} | {claim.kind} | {text} | "
      f"{claim.predicted} | {claim.measured:.4g} | "
      f"{_verdict(claim)} |"
    )
  (output_dir / "claims.md").write_text(
    "\n".join(lines) + "\n", encoding="utf-8"
  )


def show(claims: Sequence[Claim], console: rich.console.Console) -> None:
  """Prints the table, failures in red."""
  table = rich.table.Table("source", "claim", "predicted", "measured", "holds")
  for claim in claims:
    table.add_row(
      claim.source,
      claim.claim,
      claim.predicted,
      f"{claim.measured:.4g}",
      _verdict(claim),
      style=None if claim.holds else "bold red",
    )
  console.print(table)
