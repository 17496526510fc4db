"""The figure of the map: how far each arm ends from the baseline."""

from collections.abc import Mapping, Sequence
import pathlib

from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import statistics

# The same words have the same colours everywhere.
COLOURS = {
  statistics.PAYS: "#1a7f37",
  statistics.COSTS: "#b42318",
  statistics.CANNOT_TELL: "#57606a",
}


def draw(
  panels: Mapping[str, Sequence[tuple[str, outcome_lib.Outcome]]],
  path: pathlib.Path,
) -> None:
  """Draws a panel per regime: an arm per line, best first.

  Args:
    panels: By title, the arms' labels and outcomes.
    path: The PNG file.
  """
  from matplotlib import figure
  from matplotlib import lines

  shown = {
    title: sorted(
      (
        (label, each)
        for label, each in arms
        if each.difference is not None and each.arm != "baseline"
      ),
      key=lambda pair: -pair[1].difference.mean,
    )
    for title, arms in panels.items()
  }
  shown = {title: arms for title, arms in shown.items() if arms}
  rows = [max(1, len(arms)) for arms in shown.values()]
  drawing = figure.Figure(
    figsize=(9, 0.9 * len(rows) + 0.3 * sum(rows)),
    dpi=110,
    layout="constrained",
  )
  axes = drawing.subplots(
    len(rows), 1, squeeze=False, height_ratios=[count + 1.5 for count in rows]
  )[:, 0]
  for panel, (title, arms) in zip(axes, shown.items()):
    panel.axvline(0.0, color="black", linewidth=0.8)
    for y, (_, each) in enumerate(arms):
      found = each.difference
      colour = COLOURS[found.word()]
      panel.plot([found.low, found.high], [y, y], color=colour, linewidth=2)
      panel.plot([found.mean], [y], "o", color=colour, markersize=5)
    panel.set_yticks(
      range(len(arms)),
      [f"{label}   {each.flops:.2f} of the FLOPs" for label, each in arms],
      fontsize=8,
    )
    panel.set_title(title, fontsize=9, loc="left")
    panel.tick_params(axis="x", labelsize=8)
    panel.grid(axis="x", alpha=0.25)
    # An arm with two seeds may have an interval of nats: cut it.
    means = [each.difference.mean for _, each in arms]
    width = max(0.05, max(means) - min(means))
    panel.set_xlim(min(0, *means) - 0.6 * width, max(0, *means) + 0.6 * width)
  axes[-1].set_xlabel(
    "final loss minus the baseline's, nats per token; 95% interval over fresh "
    "seeds",
    fontsize=8,
  )
  drawing.legend(
    [
      lines.Line2D([], [], color=colour, marker="o", label=word)
      for word, colour in COLOURS.items()
    ],
    list(COLOURS),
    loc="outside upper right",
    ncols=len(COLOURS),
    fontsize=8,
    frameon=False,
  )
  drawing.savefig(path, metadata={"Software": None})
