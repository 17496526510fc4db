"""The one style of figures: colours by method, panels, and how to save them.

Figures are drawn in memory, without pyplot, and come out as the same bytes
every time. Matplotlib takes a second to import, so it is imported only to draw.
"""

from collections.abc import Iterable
import io
from typing import Any, NamedTuple

from swe_tf.analysis import statistics

# Okabe and Ito's palette, which colour-blind readers can tell apart. The
# baseline is always black.
BLACK, BLUE, ORANGE = "#000000", "#0072B2", "#D55E00"
_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_LINES = ("-", "--", ":", "-.")
WORD_COLOURS = {statistics.PAYS: BLUE, statistics.COSTS: ORANGE}
UNDECIDED = "gray"
_DPI = 120


class Figure(NamedTuple):
  """A drawn figure; its files are named `name`."""

  name: str
  caption: str
  png: bytes
  svg: bytes


def looks(baselines: Iterable[str], others: Iterable[str]) -> dict[str, Any]:
  """Returns the colour and the line style of each arm."""
  found: dict[str, Any] = {}
  for arms, colours in ((baselines, (BLACK,)), (others, _COLOURS)):
    for index, arm in enumerate(arms):
      turn, place = divmod(index, len(colours))
      line = _LINES[turn % len(_LINES)]
      found[arm] = {"color": colours[place], "linestyle": line}
  return found


def panels(
  count: int, size: tuple[float, float] = (11.0, 4.4)
) -> tuple[Any, list[Any]]:
  """Returns a figure and its panels, side by side."""
  from matplotlib import figure

  drawing = figure.Figure(figsize=size, dpi=_DPI, layout="constrained")
  return drawing, list(drawing.subplots(1, count, squeeze=False)[0])


def finish(panel: Any, x: str, y: str) -> None:
  """Labels a panel."""
  panel.set_xlabel(x)
  panel.set_ylabel(y)
  panel.grid(alpha=0.25)
  panel.spines[["top", "right"]].set_visible(False)


def legend(drawing: Any, panel: Any) -> None:
  """Puts one legend for all panels below them."""
  handles, labels = panel.get_legend_handles_labels()
  columns = 1 if max(map(len, labels), default=0) > 60 else 2
  place = "outside lower center"
  drawing.legend(handles, labels, loc=place, ncols=columns, fontsize=8)


def save(drawing: Any, name: str, caption: str) -> Figure:
  """Returns the figure as PNG and SVG."""
  import matplotlib

  png, svg = io.BytesIO(), io.BytesIO()
  drawing.savefig(png, format="png", metadata={"Software": None})
  with matplotlib.rc_context({"svg.hashsalt": name}):
    drawing.savefig(svg, format="svg", metadata={"Date": None})
  return Figure(name, caption, png.getvalue(), svg.getvalue())
