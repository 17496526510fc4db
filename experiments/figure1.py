"""Figure 1: what is shared when, and where that leads in weight space.

    python -m experiments.figure1    # writes docs/figures/figure1.png

Left, a stack of blocks while its weights are shared, and after. Right, the
paper's intuition, computed: linear regression with two weights and one sample,
so that a whole line of weights fits the data. Gradient descent ends at the
point of that line that is nearest to where it started; sharing first moves
along the diagonal, where both weights are equal, and ends nearer to w*.
"""

import pathlib

from matplotlib import figure
from matplotlib import patches
import numpy as np

OUTPUT = (
  pathlib.Path(__file__).resolve().parents[1] / "docs/figures/figure1.png"
)
TRUE, SAMPLE = np.array([1.3, 0.9]), np.array([1.0, 0.15])
STEPS, TAU, STEP_SIZE = 400, 30, 0.02
_SHARED, _OWN = "#D55E00", ("#0072B2", "#009E73", "#CC79A7", "#E69F00")


def train(tau: int) -> np.ndarray:
  """Returns the weights from zero on, shared for the first `tau` steps."""
  weights = np.zeros(2)
  path = [weights]
  for step in range(STEPS):
    gradient = SAMPLE * (SAMPLE @ (weights - TRUE))
    if step < tau:
      gradient = np.full(2, gradient.mean())
    weights = weights - STEP_SIZE * gradient
    path.append(weights)
  return np.stack(path)


def _draw_blocks(panel) -> None:
  for x, colours, title in (
    (0.0, [_SHARED] * 4, "shared:\nfirst τ updates"),
    (2.4, _OWN, "unshared:\neach by itself"),
  ):
    for i, colour in enumerate(colours):
      box = patches.FancyBboxPatch(
        (x, i), 1.2, 0.7, boxstyle="round,pad=0.02", color=colour, alpha=0.85
      )
      panel.add_patch(box)
      name = "w" if colour == _SHARED else f"w{i + 1}"
      panel.text(
        x + 0.6,
        i + 0.35,
        f"block {i + 1}: {name}",
        ha="center",
        va="center",
        color="white",
        fontsize=9,
      )
      if i < 3:
        panel.annotate(
          "",
          (x + 0.6, i + 0.98),
          (x + 0.6, i + 0.72),
          arrowprops={"arrowstyle": "->"},
        )
    panel.text(x + 0.6, 4.1, title, ha="center", fontsize=10)
  panel.annotate(
    "untie: copy\nweights and slots",
    (2.3, 1.9),
    (1.8, 2.35),
    ha="center",
    fontsize=8,
  )
  panel.annotate("", (2.3, 1.9), (1.3, 1.9), arrowprops={"arrowstyle": "->"})
  panel.set_xlim(-0.2, 3.8)
  panel.set_ylim(-0.2, 4.9)
  panel.axis("off")


def _draw_paths(panel) -> None:
  line = np.array([-0.2, 1.6])
  panel.plot(line, line, ":", color="gray", label="equal weights")
  fits = (SAMPLE @ TRUE - SAMPLE[0] * line) / SAMPLE[1]
  panel.plot(line, fits, "--", color="gray", label="fits the sample")
  for tau, colour, label in (
    (0, "#0072B2", "gradient descent"),
    (TAU, _SHARED, "sharing, then unsharing"),
  ):
    path = train(tau)
    panel.plot(*path.T, color=colour, linewidth=2, label=label)
    panel.plot(*path[-1], "o", color=colour)
    if tau:
      panel.plot(*path[tau], "s", color=colour, markersize=5)
      panel.annotate(
        "untied", path[tau], (8, -10), fontsize=8, textcoords="offset points"
      )
  panel.plot(*TRUE, "k*", markersize=11, label="w*")
  panel.set_xlim(-0.1, 1.6)
  panel.set_ylim(-0.1, 1.3)
  panel.set_xlabel("weight of block 1")
  panel.set_ylabel("weight of block 2")
  panel.legend(fontsize=8, loc="upper left")


def main() -> None:
  """Draws the figure."""
  drawing = figure.Figure(figsize=(10.5, 4.3), dpi=120, layout="constrained")
  blocks, paths = drawing.subplots(1, 2)
  _draw_blocks(blocks)
  _draw_paths(paths)
  drawing.savefig(OUTPUT, metadata={"Software": None})


if __name__ == "__main__":
  main()
