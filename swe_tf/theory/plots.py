"""One look for all figures of the theory: colours, sizes, predicted lines.

Figures are built without pyplot, which would keep global state.
"""

from typing import Any

from matplotlib import axes
from matplotlib import figure
from matplotlib import ticker
import numpy as np

# Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY = "#D55E00", "#CC79A7", "#56B4E9"
SEQUENCE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)

# The two methods that most figures compare keep their colours everywhere.
SHARED, UNSHARED = BLUE, VERMILION

# A prediction is dashed and dark; what was measured is coloured.
PREDICTED: dict[str, Any] = dict(color="black", linestyle="--", linewidth=1.2)
DOTTED: dict[str, Any] = dict(color="black", linestyle=":")


def panels(count: int) -> tuple[figure.Figure, list[axes.Axes]]:
  drawing = figure.Figure(figsize=(4.6 * count, 3.8), layout="constrained")
  return drawing, list(np.atleast_1d(drawing.subplots(1, count)))


def slope(x, y) -> float:
  """The exponent a of the power law y ~ x^a, by least squares of logarithms."""
  return np.polyfit(np.log(x), np.log(y), 1)[0]


def power_law(panel, x, y, colour, label, fitted=slice(None), markersize=4):
  """Draws points, and returns the exponent fitted to those of `fitted`."""
  exponent = slope(x[fitted], y[fitted])
  # Adding zero turns -0.00 into +0.00.
  label = f"{label} slope {round(exponent, 2) + 0.0:+.2f}"
  panel.loglog(x, y, "o", markersize=markersize, color=colour, label=label)
  return exponent


def decay(panel: axes.Axes, x, losses, colour, label: str) -> None:
  panel.semilogy(x, losses / losses[0], color=colour, label=label)


def decay_bound(panel: axes.Axes, rate: float, x: np.ndarray) -> None:
  panel.semilogy(x, np.exp(-rate * x), **PREDICTED, label="bound")
  panel.set_ylim(1e-9, 2)


def explain_predicted(panel: axes.Axes, label: str) -> None:
  """Gives predictions one entry in the legend."""
  panel.plot([], [], label=label, **PREDICTED)


def label_ticks(axis, values) -> None:
  """Labels a logarithmic axis of less than two decades at `values` only."""
  axis.set_major_locator(ticker.FixedLocator(values))
  axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
  axis.set_minor_locator(ticker.NullLocator())


def finish(panel: axes.Axes, title: str, x: str, y: str, **legend) -> None:
  panel.set_title(title, fontsize=10)
  panel.set(xlabel=x, ylabel=y)
  panel.grid(alpha=0.25)
  panel.legend(fontsize=8, **legend)
