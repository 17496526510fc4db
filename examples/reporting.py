"""What all examples have in common, with any Keras: flags, table, figure."""

import argparse
from collections.abc import Mapping, Sequence
import pathlib

from matplotlib import pyplot as plt


def parse_flags(
  description: str, steps: int, argv: Sequence[str] | None
) -> argparse.Namespace:
  """Parses the flags of an example; `argv` is the program's own if None."""
  parser = argparse.ArgumentParser(
    description=description.splitlines()[0],
    formatter_class=argparse.ArgumentDefaultsHelpFormatter,
  )
  parser.add_argument(
    "--output_dir", default="runs/examples", help="where the figure goes"
  )
  parser.add_argument("--steps", type=int, default=steps, help="of each run")
  flags = parser.parse_args(argv)
  if flags.steps < 10:
    parser.error(
      f"--steps ({flags.steps}) must be at least 10: a tenth of them is shared"
    )
  return flags


def report(
  title: str,
  curves: Mapping[str, Sequence[float]],
  *,
  metric: str,
  steps: int,
  untie_step: int,
  path: pathlib.Path,
) -> None:
  """Prints curves side by side, and draws them.

  Args:
    title: What was trained.
    curves: The values of each run, at equal intervals up to `steps`.
    metric: The name of the values.
    steps: The number of updates of each run.
    untie_step: The update after which the shared run was untied.
    path: The PNG file to write.
  """
  count = len(next(iter(curves.values())))
  at = [steps * (i + 1) // count for i in range(count)]
  print(f"\n{title}: {metric}, untied after step {untie_step}")
  print("  ".join(["  step", *(f"{name:>20}" for name in curves)]))
  for step, *values in zip(at, *curves.values()):
    print("  ".join([f"{step:6}", *(f"{value:20.4f}" for value in values)]))

  figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
  for name, values in curves.items():
    axes.plot(at, values, marker=".", label=f"{name}: {values[-1]:.3g}")
  axes.axvline(untie_step, color="grey", linestyle=":", label="untied")
  axes.set(title=title, xlabel="step", ylabel=metric, yscale="log")
  axes.legend()
  path.parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=100)
  plt.close(figure)
  print(f"figure: {path}")
