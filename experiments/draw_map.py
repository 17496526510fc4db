"""The figures of the map: how far each arm ends from the baseline, and at what
cost."""

from collections.abc import Collection, Mapping, Sequence
import pathlib

import numpy as np

from swe_tf.analysis import outcome as outcome_lib
from swe_tf.analysis import statistics

# The same words have the same colours everywhere.
COLOURS = {
  statistics.PAYS: "#1a7f37",
  statistics.COSTS: "#b42318",
  statistics.CANNOT_TELL: "#57606a",
}
_SHARING, _OTHER = "#0969da", "#57606a"


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
    panel.set_ylim(-0.7, len(arms) - 0.3)
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


def draw_costs(
  panels: Mapping[str, Mapping[str, outcome_lib.Outcome]],
  labels: Mapping[str, str],
  sharing: Collection[str],
  path: pathlib.Path,
) -> None:
  """Draws final loss against FLOPs, a panel per regime.

  The dashed line is what a baseline of fewer steps reaches: the measure of
  "FLOPs for an equal loss". An arm above it is the worse buy.

  Args:
    panels: By title, the outcomes of the arms; `baseline` and `half` among
      them.
    labels: The arms to draw, in words.
    sharing: Those that share weights, drawn in another colour.
    path: The PNG file.
  """
  from matplotlib import figure
  from matplotlib import ticker

  size = 5.2, 3.8 * len(panels)  # As wide as a phone can show.
  drawing = figure.Figure(figsize=size, dpi=150, layout="constrained")
  axes = drawing.subplots(len(panels), 1, squeeze=False)[:, 0]
  for panel, (title, outcomes) in zip(axes, panels.items()):
    shown = {
      arm: outcomes[arm]
      for arm in labels
      if arm in outcomes and outcomes[arm].difference is not None
    }
    baseline, half = shown["baseline"], shown["half"]
    ends = [(each.flops, each.loss.mean) for each in (half, baseline)]
    panel.plot(*zip(*ends), "--", color="black", linewidth=0.8, zorder=0)
    hidden = 1.0
    for arm, each in shown.items():
      # Around the paired difference, not around the loss: seeds differ.
      low, mean, high = baseline.loss.mean + np.array(
        [each.difference.low, each.difference.mean, each.difference.high]
      )
      colour = _SHARING if arm in sharing else _OTHER
      x = name_at = each.flops
      # The names of cheap arms stand on the left: on the right is the line.
      left = 0.4 < x < 0.9 and arm != "half"
      if x > 0.9 and arm in sharing:
        # With the baseline's FLOPs they would hide each other.
        x, name_at = hidden * 1.04, 1.09
        hidden = x
      panel.plot([x, x], [low, high], color=colour, linewidth=2)
      panel.plot([x], [mean], "o", color=colour, markersize=5)
      panel.annotate(
        labels[arm],
        (name_at, mean),
        xytext=(-6 if left else 6, -8 if arm == "baseline" else 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=9,
      )
    panel.set_xscale("log")
    panel.set_xlim(0.22, 2.0)
    panel.margins(y=0.08)
    panel.xaxis.set_major_locator(ticker.FixedLocator([0.25, 0.5, 0.75, 1.0]))
    panel.xaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0))
    panel.xaxis.set_minor_locator(ticker.NullLocator())
    panel.set_title(title, fontsize=10, loc="left")
    panel.tick_params(labelsize=9)
    panel.grid(alpha=0.25)
    panel.set_ylabel("final validation loss, nats per token", fontsize=9)
  axes[-1].set_xlabel("FLOPs of the run, of the baseline's", fontsize=9)
  drawing.savefig(path, metadata={"Software": None})
