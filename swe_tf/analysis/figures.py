"""The figures of a report, and the one style of all figures.

Figures are drawn in memory, without pyplot, and come out as the same bytes
every time. Matplotlib takes a second to import, so it is imported only to draw.
"""

from collections.abc import Iterable
import io
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from swe_tf.analysis import comparisons
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import statistics
from swe_tf.methods import catalog
from swe_tf.sharing import untie_step as untie_step_lib

# Okabe and Ito's palette, which colour-blind readers can tell apart. The
# baseline is always black.
BLACK, BLUE, ORANGE = "#000000", "#0072B2", "#D55E00"
_COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_LINES = ("-", "--", ":", "-.")
WORD_COLOURS = {statistics.PAYS: BLUE, statistics.COSTS: ORANGE}
UNDECIDED = "gray"
_DPI = 120
FLOPS = "FLOPs"


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


def new_panel(height: float = 3.6) -> tuple[Any, Any]:
  """Returns a drawing and its panel, as wide as a phone can show."""
  from matplotlib import figure

  size = (5.2, height)  # In inches.
  drawing = figure.Figure(figsize=size, dpi=_DPI, layout="constrained")
  return drawing, drawing.subplots()


def finish(panel: Any, x: str, y: str) -> None:
  from matplotlib import ticker

  panel.set_xlabel(x)
  if x == FLOPS:  # 100 G, not 1.0 with a factor in the corner.
    panel.xaxis.set_major_formatter(ticker.EngFormatter())
  panel.set_ylabel(y)
  panel.grid(alpha=0.25)
  panel.spines[["top", "right"]].set_visible(False)


def legend(drawing: Any, panel: Any) -> None:
  handles, labels = panel.get_legend_handles_labels()
  columns = 1 if max(map(len, labels), default=0) > 22 else 2
  rows = -(-len(labels) // columns)
  # More of them must not squeeze the panel.
  drawing.set_figheight(drawing.get_figheight() + 0.2 * max(0, rows - 3))
  drawing.legend(handles, labels, loc="outside lower center", ncols=columns)


def save(drawing: Any, name: str, caption: str) -> Figure:
  import matplotlib

  png, svg = io.BytesIO(), io.BytesIO()
  drawing.savefig(png, format="png", metadata={"Software": None})
  with matplotlib.rc_context({"svg.hashsalt": name}):
    drawing.savefig(svg, format="svg", metadata={"Date": None})
  return Figure(name, caption, png.getvalue(), svg.getvalue())


def draw_differences(name: str, arms: pd.DataFrame) -> Figure:
  """Draws how far each arm ends from the baseline, seed by seed."""
  drawing, panel = new_panel(height=1.1 + 0.3 * len(arms))
  panel.axvline(0.0, color="black", linewidth=1.2)
  for place, arm in enumerate(arms.itertuples()):
    colour = WORD_COLOURS.get(arm.verdict, UNDECIDED)
    values, mean = arm.differences, arm.loss_difference
    if mean.n > 1:
      ends = mean.low, mean.high
      panel.plot(ends, (place, place), color=colour, linewidth=2.5, alpha=0.6)
    panel.plot(values, [place] * len(values), "o", color=colour)
  finish(panel, "nats per token from the baseline; left is better", "")
  panel.set_yticks(range(len(arms)), arms.arm)
  panel.set_ylim(len(arms) - 0.5, -0.5)
  return save(
    drawing,
    name,
    f"Final validation loss minus the baseline's: {arms.setting.iloc[0]}. Each "
    "dot is a seed, each line the 95% interval of the mean over seeds: "
    "blue pays, orange costs, gray cannot tell.",
  )


def draw_losses(
  name: str, runs: pd.DataFrame, curves: pd.DataFrame
) -> list[Figure]:
  """Draws the mean and range over seeds of the losses in one setting.

  The first figure has the validation loss against the FLOPs, if these are
  known. The second has it against the step, or where all arms cost the same
  the training loss (the paper's Figure 3).
  """
  is_baseline = runs.method == catalog.BASELINE
  look_of = looks(
    runs[is_baseline].arm.unique(), runs[~is_baseline].arm.unique()
  )
  by_flops = runs.flops.notna().all()
  differ = by_flops and runs.flops.nunique() > 1
  second = comparisons.VALIDATION if differ else "train/training_loss"
  drawn: list[Figure] = []
  for curve, is_flops in ((comparisons.VALIDATION, by_flops), (second, False)):
    drawing, panel = new_panel()
    is_validation = curve == comparisons.VALIDATION
    for arm, group in runs.groupby("arm", sort=False):
      look, first = look_of[arm], group.iloc[0]
      # At the steps that all seeds have.
      found = curves[curves.run.isin(group.run) & (curves.curve == curve)]
      values = found.pivot(index="step", columns="run", values="value").dropna()
      if values.empty:
        continue
      x = values.index.to_numpy(float)
      x = comparisons.flops_until(first, x / first.steps) if is_flops else x
      shape = {"marker": "o" if is_validation else "", "markersize": 3}
      label = f"{arm} ({len(group)} {'seed' if len(group) == 1 else 'seeds'})"
      mean = values.mean(axis=1)
      panel.plot(x, mean, label=label, linewidth=1.5, **shape, **look)
      area = {"alpha": 0.15, "linewidth": 0, "color": look["color"]}
      panel.fill_between(x, values.min(axis=1), values.max(axis=1), **area)
      if first.method == catalog.SWE:
        for tau in sorted({tau for tau in group.untie_step if tau}):
          end = tau
          if is_flops:
            end = comparisons.flops_until(first, tau / first.steps)
          panel.axvline(end, color=look["color"], linestyle="--", linewidth=0.8)
    for entropy in sorted(set(runs.entropy.dropna())):
      label = "entropy of single tokens"
      panel.axhline(entropy, color="gray", linestyle=":", label=label)
    kind = "validation" if is_validation else "training"
    finish(
      panel, FLOPS if is_flops else "step", f"{kind} loss (nats per token)"
    )
    legend(drawing, panel)
    on = "FLOPs" if is_flops else "steps"
    caption = f"{kind.capitalize()} loss against {on}"
    if runs.groupby("arm").size().max() > 1:
      caption += ": mean over seeds, with their range"
    caption += f". {runs.setting.iloc[0]}."
    if (runs.method == catalog.SWE).any():
      caption += " A dashed vertical line is where the weights were untied."
    drawn.append(save(drawing, name + "_steps" * len(drawn), caption))
  return drawn


def draw_untie_steps(name: str, arms: pd.DataFrame) -> list[Figure]:
  """Draws final loss and accuracy against tau, with a line for each unit.

  This is the paper's Figure 4. The arms are the baseline and those that share
  with a fixed tau.
  """
  units = arms[arms.is_fixed].unit.unique()
  look_of = looks((), units)
  caption = f"{arms.setting.iloc[0]}. Mean over seeds and its 95% interval."
  drawn = []
  for score, title in (
    (runs_lib.LOSS, "final validation loss (nats per token)"),
    (runs_lib.ACCURACY, "final MLM accuracy (%)"),
  ):
    drawing, panel = new_panel()
    for unit in units:
      found = arms[
        (arms.is_baseline | (arms.unit == unit)) & arms[score].notna()
      ]
      means = {
        (arm.untie_step or 0) / arm.steps: getattr(arm, score)
        for arm in found.itertuples()
      }
      if means:
        x, y = sorted(means), [means[tau].mean for tau in sorted(means)]
        halves = np.array([means[tau].high - means[tau].mean for tau in x])
        halves[~np.isfinite(halves)] = 0.0  # One seed has none.
        shape = {"marker": "o", "capsize": 3, "label": f"units {unit}"}
        panel.errorbar(x, y, halves, **shape, **look_of[unit])
    fraction = untie_step_lib.PAPERS_FRACTION
    label = f"the paper's choice, {fraction:.0%}"
    panel.axvline(fraction, color="gray", linestyle=":", label=label)
    finish(panel, "untie step / steps (0: baseline, 1: always shared)", title)
    legend(drawing, panel)
    drawn.append(save(drawing, f"{name}_{score}", caption))
  return drawn
