"""The figures of a report: differences, loss curves, untie steps."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from swe_tf.analysis import comparisons
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import style
from swe_tf.methods import catalog
from swe_tf.sharing import untie_step as untie_step_lib


def draw_differences(arms: pd.DataFrame) -> style.Figure:
  """Draws how far each arm ends from the baseline, seed by seed.

  Args:
    arms: The arms that can be compared with the baseline.
  """
  settings = arms.groupby("setting", sort=False)
  has_headings = settings.ngroups > 1
  height = 1.1 + 0.3 * (len(arms) + has_headings * settings.ngroups)
  # Narrow, so that its labels can be read on a phone.
  drawing, (panel,) = style.panels(1, (8.0, height))
  panel.axvline(0.0, color="black", linewidth=1.2)
  place, ticks = 0, {}
  for setting, found in settings:
    if has_headings:
      panel.axhline(place - 0.5, color="gray", linewidth=0.5)
      panel.text(
        0.01,
        place,
        textwrap.shorten(setting, 95, placeholder=" …"),
        transform=panel.get_yaxis_transform(),
        va="center",
        fontsize=8,
        fontweight="bold",
        backgroundcolor="white",
        in_layout=False,  # A long one must not squeeze the panel.
      )
      place += 1
    for arm in found.itertuples():
      colour = style.WORD_COLOURS.get(arm.verdict, style.UNDECIDED)
      values, mean = arm.differences, arm.loss_difference
      if mean.n > 1:
        ends = mean.low, mean.high
        panel.plot(ends, (place, place), color=colour, linewidth=2.5, alpha=0.6)
      panel.plot(values, [place] * len(values), "o", color=colour)
      ticks[place] = arm.arm
      place += 1
  style.finish(
    panel,
    "final validation loss minus the baseline's (nats per token); "
    "left is better",
    "",
  )
  panel.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
  panel.set_ylim(place - 0.5, -0.5)
  return style.save(
    drawing,
    "differences",
    "Each dot is a seed, each line the 95% interval of the mean over seeds: "
    "blue pays, orange costs, gray cannot tell.",
  )


def draw_losses(
  name: str, runs: pd.DataFrame, curves: pd.DataFrame
) -> style.Figure:
  """Draws the mean and range over seeds of the losses in one setting.

  The validation loss is drawn against the step, and beside it against the FLOPs
  if the arms' costs differ; otherwise the training loss (the paper's Figure 3).

  Args:
    name: The name of the figure.
    runs: The runs of the setting that count.
    curves: All curves.
  """
  is_baseline = runs.method == catalog.BASELINE
  looks = style.looks(
    runs[is_baseline].arm.unique(), runs[~is_baseline].arm.unique()
  )
  by_flops = runs.flops.notna().all() and runs.flops.nunique() > 1
  drawing, panels = style.panels(2)
  second = comparisons.VALIDATION if by_flops else "train/training_loss"
  for panel, curve in zip(panels, (comparisons.VALIDATION, second)):
    is_flops = by_flops and panel is panels[1]
    for arm, group in runs.groupby("arm", sort=False):
      look = looks[arm]
      # At the steps that all seeds have.
      found = curves[curves.run.isin(group.run) & (curves.curve == curve)]
      values = found.pivot(index="step", columns="run", values="value").dropna()
      if values.empty:
        continue
      first = group.iloc[0]
      x = values.index.to_numpy(float)
      x = comparisons.flops_until(first, x / first.steps) if is_flops else x
      marker = "o" if curve == comparisons.VALIDATION else ""
      label = f"{arm} ({len(group)} {'seed' if len(group) == 1 else 'seeds'})"
      shape = {"marker": marker, "markersize": 3, "linewidth": 1.2}
      panel.plot(x, values.mean(axis=1), label=label, **shape, **look)
      shape = {"alpha": 0.15, "linewidth": 0, "color": look["color"]}
      panel.fill_between(x, values.min(axis=1), values.max(axis=1), **shape)
      if first.method == catalog.SWE and not is_flops:
        for tau in sorted({tau for tau in group.untie_step if tau}):
          panel.axvline(tau, color=look["color"], linestyle="--", linewidth=0.8)
    for entropy in sorted(set(runs.entropy.dropna())):
      panel.axhline(
        entropy,
        color="gray",
        linestyle=":",
        linewidth=1.2,
        label="entropy of single tokens",
      )
    kind = "validation" if curve == comparisons.VALIDATION else "training"
    style.finish(
      panel, "FLOPs" if is_flops else "step", f"{kind} loss (nats per token)"
    )
  style.legend(drawing, panels[0])
  return style.save(
    drawing,
    name,
    f"{runs.setting.iloc[0]}. Mean over seeds, with their range; a dashed "
    "vertical line is the step after which the weights were untied.",
  )


def draw_untie_steps(name: str, arms: pd.DataFrame) -> style.Figure:
  """Draws final loss and accuracy against tau, with a line for each unit.

  This is the paper's Figure 4.

  Args:
    name: The name of the figure.
    arms: The baseline and the arms that share with a fixed tau.
  """
  drawing, panels = style.panels(2)
  baseline = arms[arms.is_baseline]
  units = arms[arms.is_fixed].unit.unique()
  looks = style.looks((), units)
  for panel, score, title in (
    (panels[0], runs_lib.LOSS, style.LOSS),
    (panels[1], runs_lib.ACCURACY, "final MLM accuracy (%)"),
  ):
    for unit in units:
      points = pd.concat([baseline, arms[arms.unit == unit]])
      points = points[points[score].notna()].drop_duplicates("arm")
      if len(points):
        _draw_means(panel, points, score, f"units {unit}", looks[unit])
    fraction = untie_step_lib.PAPERS_FRACTION
    label = f"the paper's choice, {fraction:.0%}"
    panel.axvline(fraction, color="gray", linestyle=":", label=label)
    style.finish(
      panel, "untie step / steps (0: baseline, 1: always shared)", title
    )
  style.legend(drawing, panels[0])
  caption = f"{arms.setting.iloc[0]}. Mean over seeds and its 95% interval."
  return style.save(drawing, name, caption)


def _draw_means(
  panel: Any, arms: pd.DataFrame, score: str, label: str, look: Any
) -> None:
  points = sorted(
    (
      (arm.untie_step or 0) / arm.steps,
      getattr(arm, score).mean,
      getattr(arm, score).high - getattr(arm, score).mean,
    )
    for arm in arms.itertuples()
  )
  x, means, halves = np.transpose(points)
  halves = np.where(np.isfinite(halves), halves, 0.0)  # One seed has none.
  panel.errorbar(x, means, halves, marker="o", capsize=3, label=label, **look)
