"""Compares two runs bit for bit: config, curves, weights and optimizer slots.

    swe diff runs/a runs/b

Reports the first step at which they diverge. Weights and slots are compared at
the last step for which both runs have a checkpoint. The exit status is 0 if
nothing differs, and 1 if something does or there is nothing to compare.
"""

from collections.abc import Iterator
import dataclasses

from rich import console as rich_console

from swe_tf import errors
from swe_tf import messages
from swe_tf import sameness
from swe_tf.analysis import difference as difference_lib
from swe_tf.commands import options as opt

_MOST = 10  # Fields, curves or variables that are listed.


@dataclasses.dataclass(frozen=True)
class Options:
  runs: tuple[str, ...] = opt.argument("Two run directories.")

  def __post_init__(self):
    if len(self.runs) != 2:
      raise errors.UsageError(
        f"swe diff takes two run directories, not {len(self.runs)}."
      )


def run(options: Options) -> int:
  with messages.during("comparing", announce=False):
    found = difference_lib.compare(*options.runs)
  console = rich_console.Console(highlight=False, soft_wrap=True)
  for line in _describe(found):
    console.print(line, markup=False)
  for path in options.runs:
    changed = sameness.describe_accepted(path)
    if changed:
      console.print(f"{path} was changed on the way: {changed}", markup=False)
  return 0 if found.is_equal else 1


def _describe(found: difference_lib.Difference) -> Iterator[str]:
  number = len(found.config)
  yield f"config: {f'{number} fields differ' if number else 'equal'}"
  yield from _listed([f"{name}: {a!r} | {b!r}" for name, a, b in found.config])
  number, total = len(found.curves), found.compared_curves
  yield f"curves: {f'{number} of {total} differ' if number else 'equal'}"
  curves = sorted(found.curves.items(), key=lambda item: item[1][0])
  yield from _listed(
    [f"{name}: at step {step:,}, {a} | {b}" for name, (step, a, b) in curves]
  )
  at = f"compared at step {found.steps[-1]:,}" if found.steps else ""
  yield f"checkpoints: {at or 'the runs have none at the same step'}"
  for part in found.checkpoint:
    what = f"{len(part.differ)} of {part.count} differ"
    if part.differ and part.largest < float("inf"):
      what += f", by {part.largest:.3g} at most"
    if part.only:
      what += f"; {len(part.only)} only in one"
    yield f"  {part.kind}: {'equal' if part.is_equal else what}"
    yield from _listed([*part.differ, *part.only], "    ")
  if not found.has_results:
    yield "nothing to compare: they have no curve and no checkpoint in common"
  elif found.is_equal:
    yield "equal in everything that both runs have"
  elif found.first_step is None:
    yield "they differ, but the step at which they part is not known"
  else:
    yield f"first step at which they are seen to part: {found.first_step:,}"


def _listed(entries: list[str], indent: str = "  ") -> Iterator[str]:
  for entry in entries[:_MOST]:
    yield f"{indent}{entry}"
  if len(entries) > _MOST:
    yield f"{indent}... and {len(entries) - _MOST} more"
