"""The figure of the map: each arm's final loss against its FLOPs."""

from collections.abc import Mapping, Sequence
import pathlib

from swe_tf.analysis import statistics
from swe_tf.studies import outcome as outcome_lib

Records = Sequence[outcome_lib.Record]


def draw(
  regimes: Mapping[str, Records],
  titles: Mapping[str, str],
  by_rate: Sequence[str],
  path: pathlib.Path,
) -> None:
  """Draws a panel for each regime.

  Args:
    regimes: The runs.
    titles: The titles of the regimes.
    by_rate: Regimes that are judged rate by rate: the loss against the rate.
    path: The PNG file.
  """
  import matplotlib
  from matplotlib import figure

  columns = min(3, len(regimes))
  rows = -(-len(regimes) // columns)
  drawing = figure.Figure(
    figsize=(4.6 * columns, 3.6 * rows), dpi=110, layout="constrained"
  )
  panels = drawing.subplots(rows, columns, squeeze=False).flat
  for panel in panels[len(regimes) :]:
    panel.set_visible(False)
  arms = dict.fromkeys(r.arm for records in regimes.values() for r in records)
  maps = matplotlib.colormaps
  palette = [*maps["tab10"].colors, *maps["Dark2"].colors]
  colours = {arm: palette[i % len(palette)] for i, arm in enumerate(arms)}
  for panel, (regime, records) in zip(panels, regimes.items()):
    (_draw_rates if regime in by_rate else _draw_flops)(panel, records, colours)
    panel.set_title(titles[regime], fontsize=9)
    panel.set_ylabel("final loss", fontsize=8)
    panel.grid(alpha=0.25)
  drawing.savefig(path, metadata={"Software": None})


def _draw_flops(panel, records: Records, colours: Mapping[str, tuple]) -> None:
  outcomes = outcome_lib.compare(records)
  panel.axhline(
    outcomes["baseline"].loss.mean, color="black", linewidth=0.8, linestyle="--"
  )
  losses = {
    arm: [run.final_loss for run in runs.values()]
    for arm, runs in outcome_lib.at_best_rates(records).items()
  }
  everything = [loss for found in losses.values() for loss in found]
  flops = [each.flops for each in outcomes.values()]
  height = 0.05 * (max(everything) - min(everything))
  width = 0.3 * (max(flops) - min(flops))
  placed: list[tuple[float, float]] = []
  for each in sorted(outcomes.values(), key=lambda o: o.loss.mean):
    found, colour = losses[each.arm], colours[each.arm]
    panel.plot([each.flops] * len(found), found, ".", alpha=0.7, color=colour)
    # Names that would overlap are moved up.
    y = each.loss.mean
    while any(
      abs(each.flops - x) < width and abs(y - other) < height
      for x, other in placed
    ):
      y += height / 4
    placed.append((each.flops, y))
    panel.annotate(
      each.arm,
      (each.flops, each.loss.mean),
      xytext=(each.flops + 0.03 * width / 0.3, y),
      fontsize=7,
      color=colour,
      va="center",
    )
  panel.margins(x=0.3, y=0.12)
  panel.set_xlabel("FLOPs / baseline's", fontsize=8)


def _draw_rates(panel, records: Records, colours: Mapping[str, tuple]) -> None:
  for arm in dict.fromkeys(record.arm for record in records):
    runs = [record for record in records if record.arm == arm]
    rates = sorted({run.learning_rate for run in runs})
    means = [
      statistics.mean(r.final_loss for r in runs if r.learning_rate == x)
      for x in rates
    ]
    panel.plot(
      rates, [each.mean for each in means if each], "-", color=colours[arm]
    )
    panel.plot(
      [run.learning_rate for run in runs],
      [run.final_loss for run in runs],
      ".",
      alpha=0.7,
      color=colours[arm],
      label=arm,
    )
  panel.set_xscale("log")
  panel.legend(fontsize=7)
  panel.set_xlabel("peak learning rate", fontsize=8)
