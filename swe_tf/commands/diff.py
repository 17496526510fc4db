"""Compares two runs bit for bit: config, curves, weights and optimizer slots.

    swe diff runs/a runs/b

Reports the first step at which they diverge. Weights and slots are compared at
the last step for which both runs have a checkpoint. The exit status is 0 if
nothing differs, and 1 if something does or there is nothing to compare.
"""

import dataclasses

from absl import logging
from rich import console as rich_console

from swe_tf import errors
from swe_tf.analysis import difference as difference_lib
from swe_tf.commands import options as options_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """The arguments and flags of the command."""

  runs: tuple[str, ...] = options_lib.argument("Two run directories.")
  most: int = options_lib.flag(
    "How many fields, curves and variables to list.", 10, lower_bound=1
  )

  def __post_init__(self):
    if len(self.runs) != 2:
      raise errors.UsageError(
        f"swe diff takes two run directories, not {len(self.runs)}."
      )


def run(options: Options) -> int:
  """Prints what differs; returns 0 only if the runs are equal."""
  logging.set_verbosity(logging.ERROR)  # TensorBoard logs every file.
  found = difference_lib.compare(*options.runs)
  console = rich_console.Console(highlight=False, soft_wrap=True)
  for line in describe(found, options.most):
    console.print(line, markup=False)
  return 0 if found.is_equal else 1


def describe(found: difference_lib.Difference, most: int) -> list[str]:
  """Returns the lines that describe the differences.

  Args:
    found: The differences.
    most: The maximum number of entries in each list.
  """
  lines = [f"config: {_count(len(found.config), 'fields', 'differ')}"]
  entries = [
    f"{name}: {one!r} | {other!r}" for name, one, other in found.config
  ]
  lines += _listed(entries, most)
  curves = sorted(found.curves.items(), key=lambda item: item[1][0])
  of_all = f"of {found.compared_curves}"
  lines.append(f"curves: {_count(len(curves), of_all, 'differ')}")
  entries = [
    f"{name}: at step {step:,}, {_value(one)} | {_value(other)}"
    for name, (step, one, other) in curves
  ]
  lines += _listed(entries, most)
  if not found.steps:
    lines.append("checkpoints: the runs have none at the same step")
  else:
    lines.append(f"checkpoints: compared at step {found.steps[-1]:,}")
  for part in found.checkpoint:
    what = f"{len(part.differ)} of {part.count} differ"
    if part.differ and part.largest < float("inf"):
      what += f", by {part.largest:.3g} at most"
    if part.only:
      what += f"; {len(part.only)} only in one"
    lines.append(f"  {part.kind}: {'equal' if part.is_equal else what}")
    lines += _listed([*part.differ, *part.only], most, "    ")
  if not found.has_results:
    lines.append(
      "nothing to compare: they have no curve and no checkpoint in common"
    )
  elif found.is_equal:
    lines.append("equal in everything that both runs have")
  elif found.first_step is None:
    lines.append("they differ, but the step at which they part is not known")
  else:
    lines.append(
      f"first step at which they are seen to part: {found.first_step:,}"
    )
  return lines


def _count(number: int, noun: str, verb: str) -> str:
  return f"{number} {noun} {verb}" if number else "equal"


def _listed(entries: list[str], most: int, indent: str = "  ") -> list[str]:
  lines = [f"{indent}{entry}" for entry in entries[:most]]
  if len(entries) > most:
    lines.append(f"{indent}... and {len(entries) - most} more")
  return lines


def _value(value: float | None) -> str:
  return "no value" if value is None else f"{value!r}"
