"""The figures of a report: its verdict, loss curves, untie steps.

Loss curves are the paper's Figure 3, untie steps its Figure 4.

They are drawn in memory, without pyplot, and come out as the same bytes every
time. Matplotlib takes a second to import, so it is imported only to draw.
"""

from collections.abc import Collection, Mapping, Sequence
import io
from typing import Any

import numpy as np

from swe_tf.analysis import comparisons
from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import tables
from swe_tf.analysis import verdict
from swe_tf.methods import catalog
from swe_tf.sharing import untie_step as untie_step_lib

# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = (
  "#000000",
  "#0072B2",
  "#D55E00",
  "#009E73",
  "#CC79A7",
  "#E69F00",
  "#56B4E9",
)
_STYLES = ("-", "--", ":", "-.")
_WORD_COLOURS = {verdict.AHEAD: "#0072B2", verdict.BEHIND: "#D55E00"}
_SIZE, _DPI = (11.0, 4.4), 120


def draw_differences(
  name: str, settings: Mapping[str, Sequence[verdict.Difference]]
) -> tables.Figure:
  """Draws how far each method ends from the baseline, seed by seed.

  Args:
    name: The name of the figure.
    settings: The differences by the title of the setting.
  """
  from matplotlib import figure

  labels: list[str] = []
  rows: list[tuple[int, verdict.Difference]] = []
  headings: dict[int, str] = {}
  for title, found in settings.items():
    if len(settings) > 1:
      headings[len(labels)] = title
      labels.append("")
    rows += [(len(labels) + i, each) for i, each in enumerate(found)]
    labels += [each.method for each in found]
  # Narrow, so that its labels can be read on a phone.
  size = 8.0, 1.1 + 0.3 * len(labels)
  drawing = figure.Figure(figsize=size, dpi=_DPI, layout="constrained")
  panel = drawing.subplots()
  panel.axvline(0.0, color="black", linewidth=1.2)
  for row, each in rows:
    colour = _WORD_COLOURS.get(each.word, "gray")
    if len(each.values) > 1:
      ends = each.interval.low, each.interval.high
      panel.plot(ends, (row, row), color=colour, linewidth=2.5, alpha=0.6)
    panel.plot(each.values, [row] * len(each.values), "o", color=colour)
  panel.set_yticks([row for row, _ in rows], [each.method for _, each in rows])
  panel.tick_params(axis="y", labelsize=8)
  for row, title in headings.items():
    panel.axhline(row - 0.5, color="gray", linewidth=0.5)
    panel.text(
      0.01,
      row,
      title,
      transform=panel.get_yaxis_transform(),
      va="center",
      fontsize=8,
      backgroundcolor="white",
    )
  panel.set_ylim(len(labels) - 0.5, -0.5)
  panel.set_xlabel(
    "final validation loss minus the baseline's (nats a token); left is better"
  )
  panel.grid(alpha=0.25, axis="x")
  return _save(
    drawing,
    name,
    "Each dot is a seed, each line the 95% interval of the mean over seeds: "
    "blue is ahead of the baseline, orange behind it, gray undecided.",
  )


def draw_losses(
  name: str,
  comparison: comparisons.Comparison,
  chosen: Mapping[str, groups_lib.Group],
) -> tables.Figure:
  """Draws the mean and range over seeds of training and validation losses.

  Args:
    name: The name of the figure.
    comparison: The setting.
    chosen: The methods by their titles.
  """
  drawing, panels = _panels()
  for panel, kind, marker in zip(panels, ("training", "validation"), ("", "o")):
    for index, (title, group) in enumerate(chosen.items()):
      look = {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _STYLES[index // len(_COLOURS) % len(_STYLES)],
      }
      curves = [run.losses(kind) for run in group.runs]
      _draw_curves(
        panel, title, [each for each in curves if each], marker, look
      )
      taus = {run.untie_step for run in group.runs if run.untie_step}
      for tau in sorted(taus if group.config.method == catalog.SWE else ()):
        panel.axvline(tau, color=look["color"], linestyle="--", linewidth=0.8)
    for entropy in comparison.entropies:
      label = "entropy of single tokens"
      panel.axhline(
        entropy, color="gray", linestyle=":", linewidth=1.2, label=label
      )
    _finish(panel, "step", f"{kind} loss (nats a token)")
  return _save(
    drawing,
    name,
    f"{comparison.title}. Mean over seeds, with their range; "
    "a dashed vertical line is the step after which the weights were untied.",
  )


def _draw_curves(panel, title: str, curves, marker: str, look) -> None:
  """Draws the mean and range at the steps that all curves have."""
  found = [dict(curve) for curve in curves]
  steps = sorted(set.intersection(*map(set, found))) if found else []
  if not steps:
    return
  values = np.array([[curve[step] for step in steps] for curve in found])
  label = f"{title} (n={len(values)})"
  shape = {"marker": marker, "markersize": 3, "linewidth": 1.2}
  panel.plot(steps, values.mean(0), label=label, **shape, **look)
  shape = {"alpha": 0.15, "linewidth": 0, "color": look["color"]}
  panel.fill_between(steps, values.min(0), values.max(0), **shape)


def draw_untie_steps(
  name: str,
  comparison: comparisons.Comparison,
  chosen: Collection[groups_lib.Group],
) -> tables.Figure:
  """Draws the final accuracy and loss against tau, with a line for each unit.

  Args:
    name: The name of the figure.
    comparison: The setting.
    chosen: The baseline and the groups that share with a fixed tau.
  """
  drawing, panels = _panels()
  units = {
    group.config.unit_size or 1: group.config.unit
    for group in chosen
    if group.config.is_fixed_sharing
  }
  for panel, score, title in (
    (panels[0], found_runs.ACCURACY, "final MLM accuracy (%)"),
    (panels[1], found_runs.LOSS, "final validation loss (nats a token)"),
  ):
    for colour, unit_size in zip(_COLOURS[1:], sorted(units)):
      points = [
        (
          (group.config.untie_step or 0) / group.config.train_steps,
          found.mean,
          found.std or 0.0,
        )
        for group in chosen
        if (found := group.statistic(score))
        and (
          group is comparison.baseline or group.config.unit_size == unit_size
        )
      ]
      if points:
        label = f"units {units[unit_size]}"
        shape = {"marker": "o", "capsize": 3, "color": colour, "label": label}
        panel.errorbar(*np.transpose(sorted(points)), **shape)
    fraction = untie_step_lib.PAPERS_FRACTION
    label = f"the paper's choice, {fraction:.0%}"
    panel.axvline(fraction, color="gray", linestyle=":", label=label)
    _finish(panel, "untie step / steps (0: baseline, 1: always shared)", title)
  caption = f"{comparison.title}. Mean and standard deviation over seeds."
  return _save(drawing, name, caption)


def _panels() -> tuple[Any, Any]:
  from matplotlib import figure

  drawing = figure.Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
  return drawing, drawing.subplots(1, 2)


def _finish(panel, x: str, y: str) -> None:
  panel.set_xlabel(x)
  panel.set_ylabel(y)
  panel.grid(alpha=0.25)
  panel.legend(fontsize=7)


def _save(drawing, name: str, caption: str) -> tables.Figure:
  import matplotlib

  png, svg = io.BytesIO(), io.BytesIO()
  drawing.savefig(png, format="png", metadata={"Software": None})
  with matplotlib.rc_context({"svg.hashsalt": name}):
    drawing.savefig(svg, format="svg", metadata={"Date": None})
  return tables.Figure(name, caption, png.getvalue(), svg.getvalue())
