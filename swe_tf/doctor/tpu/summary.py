"""The TPU compiler's reports as a table and sentences."""

from collections.abc import Mapping, Sequence

from rich import table as rich_table

from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import findings
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import step_kinds
from swe_tf.doctor.tpu import topologies

_ROWS = {
  "peak": ("peak memory", findings.size),
  "arguments": ("arguments", findings.size),
  "temporaries": ("temporaries", findings.size),
  "flops": ("flops", lambda count: f"{count / 1e12:.4g} TFLOP"),
  "bytes": ("bytes", findings.size),
  "all_reduce": ("all-reduce", findings.size),
}
_UNKNOWN = "?"


def make_table(
  found: Mapping[str, Mapping[str, depths_lib.Estimate]],
  topology: topologies.Topology,
  title: str,
) -> rich_table.Table:
  """Returns the table, with a question mark for what cannot be extrapolated."""
  table = rich_table.Table("each replica", *found, "shared/stock", title=title)

  def fits(peak):
    if not peak.holds:
      return _UNKNOWN
    return "yes" if peak.value <= topology.generation.hbm else "no"

  table.add_row("fits", *(fits(found[kind]["peak"]) for kind in found), "")
  for name, (label, render) in _ROWS.items():
    row = {kind: found[kind][name] for kind in found}
    stock, shared = row[step_kinds.STOCK], row[step_kinds.SHARED]
    # A small model may need no temporaries outside the chip's caches.
    ratio = (
      f"{shared.value / stock.value:.4f}"
      if stock.value and stock.holds and shared.holds
      else ""
    )
    table.add_row(
      label,
      *(render(one.value) if one.holds else _UNKNOWN for one in row.values()),
      ratio,
    )
  return table


def how_far_from_a_line(found, depths: Sequence[int]) -> str:
  """Describes how good the extrapolation is, and what to do if it is bad."""
  if len(depths) == 2:
    return "the full depth is extrapolated from both, unchecked"
  deviations = [
    (abs(estimates[name].deviation), f"{label} of the {kind} step")
    for kind, estimates in found.items()
    for name, (label, _) in _ROWS.items()
    if estimates[name].deviation is not None
  ]
  if not deviations:
    return "compiled at full depth: nothing is extrapolated"
  worst, name = max(deviations)
  text = (
    f"the line is checked at the middle depth: off by {worst:.2%} at most "
    f"({name})"
  )
  if all(
    estimates[name].holds for estimates in found.values() for name in _ROWS
  ):
    return text
  return (
    f"{text}. What is off by more than 5% is not linear, and is shown as "
    f"{_UNKNOWN}: choose larger depths"
  )


def against_cost_model(config, found, replicas: int) -> str:
  """Describes how far the compiler's counts are from `swe doctor cost`."""
  cost = cost_lib.estimate(config)
  counted = found[step_kinds.STOCK]["flops"].value
  payloads = {
    kind: found[kind]["all_reduce"].value / phase.all_reduce_bytes - 1
    for kind, phase in cost.phases.items()
    if kind in found  # A model that grows has other phases.
  }
  return (
    f"against swe doctor cost, the compiler counts "
    f"{counted * replicas / cost.flops_per_step - 1:+.2%} FLOPs, "
    + ", ".join(
      f"{off:+.2%} all-reduce {kind}" for kind, off in payloads.items()
    )
  )
