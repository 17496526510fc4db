"""The figures of a report: loss curves (Figure 3), untie steps (Figure 4).

Drawn without pyplot, into memory, and the same bytes every time.
"""

from collections.abc import Sequence
import io

import matplotlib
from matplotlib import figure as figure_lib
import numpy as np

from swe_tf.report import facts as facts_lib
from swe_tf.report import groups as groups_lib
from swe_tf.report import runs as runs_lib
from swe_tf.report import tables

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
_SIZE, _DPI = (11.0, 4.4), 120
# The paper's choice of tau, section 5.3.2.
_PAPERS_FRACTION = 0.1


def draw_losses(
  name: str,
  comparison: groups_lib.Comparison,
  chosen: Sequence[tuple[str, groups_lib.Group]],
) -> tables.Figure:
  """Draws training and validation loss of methods, mean and range over seeds.

  Args:
    name: The name of the figure.
    comparison: The setting.
    chosen: The methods with their titles.
  """
  drawing, panels = _panels()
  for index, (title, group) in enumerate(chosen):
    look = {
      "color": _COLOURS[index % len(_COLOURS)],
      "linestyle": _STYLES[index // len(_COLOURS) % len(_STYLES)],
    }
    for panel, curves, marker in (
      (panels[0], [run.train.get("training_loss") for run in group.runs], ""),
      (
        panels[1],
        [run.validation.get("validation_loss") for run in group.runs],
        "o",
      ),
    ):
      steps, values = _common(curves)
      if len(steps):
        panel.plot(
          steps,
          values.mean(0),
          label=f"{title} (n={len(values)})",
          marker=marker,
          markersize=3,
          linewidth=1.2,
          **look,
        )
        panel.fill_between(
          steps,
          values.min(0),
          values.max(0),
          alpha=0.15,
          color=look["color"],
          linewidth=0,
        )
      for step in sorted(
        {
          run.untie_step
          for run in group.runs
          if group.facts.method == facts_lib.SWE and run.untie_step
        }
      ):
        panel.axvline(step, color=look["color"], linestyle="--", linewidth=0.8)
  for panel, title in zip(panels, ("training", "validation")):
    for entropy in comparison.entropies:
      panel.axhline(
        entropy,
        color="gray",
        linestyle=":",
        linewidth=1.2,
        label="entropy of single tokens",
      )
    _finish(panel, "step", f"{title} loss (nats a token)")
  return _save(
    drawing,
    name,
    f"{comparison.title}. Mean over seeds, with their range; "
    "a dashed vertical line is the step after which the weights were untied.",
  )


def draw_untie_steps(
  name: str,
  comparison: groups_lib.Comparison,
  chosen: Sequence[groups_lib.Group],
) -> tables.Figure:
  """Draws the final accuracy and loss against tau, a line for each unit.

  Args:
    name: The name of the figure.
    comparison: The setting.
    chosen: The baseline and the groups that share with a fixed tau.
  """
  drawing, panels = _panels()
  units = sorted(
    {group.facts.unit_size for group in chosen if group.facts.is_fixed_sharing}
  )
  for panel, score, title in (
    (panels[0], runs_lib.ACCURACY, "final MLM accuracy (%)"),
    (panels[1], runs_lib.LOSS, "final validation loss (nats a token)"),
  ):
    for colour, unit in zip(_COLOURS[1:], units):
      points = []
      for group in chosen:
        found = group.statistic(score)
        if found and (
          group is comparison.baseline or group.facts.unit_size == unit
        ):
          points.append(
            (
              group.facts.untie_step / group.facts.train_steps,
              found.mean,
              found.std or 0.0,
            )
          )
      if points:
        layers = comparison.facts.num_layers
        panel.errorbar(
          *np.transpose(sorted(points)),
          marker="o",
          capsize=3,
          color=colour,
          label=f"units {unit}x{layers // unit}",
        )
    panel.axvline(
      _PAPERS_FRACTION,
      color="gray",
      linestyle=":",
      label="the paper's choice, 10%",
    )
    _finish(panel, "untie step / steps (0: baseline, 1: always shared)", title)
  return _save(
    drawing,
    name,
    f"{comparison.title}. Mean and standard deviation over seeds.",
  )


def _common(curves) -> tuple[np.ndarray, np.ndarray]:
  """Returns the steps that all curves have, and a row of values for each."""
  found = [dict(curve) for curve in curves if curve]
  if not found:
    return np.array([]), np.array([])
  steps = sorted(set.intersection(*(set(curve) for curve in found)))
  return np.array(steps), np.array(
    [[curve[step] for step in steps] for curve in found]
  )


def _panels():
  drawing = figure_lib.Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
  return drawing, drawing.subplots(1, 2)


def _finish(panel, x: str, y: str) -> None:
  panel.set_xlabel(x)
  panel.set_ylabel(y)
  panel.grid(alpha=0.25)
  panel.legend(fontsize=7)


def _save(drawing: figure_lib.Figure, name: str, caption: str) -> tables.Figure:
  png, svg = io.BytesIO(), io.BytesIO()
  drawing.savefig(png, format="png", metadata={"Software": None})
  with matplotlib.rc_context({"svg.hashsalt": name}):
    drawing.savefig(svg, format="svg", metadata={"Date": None})
  return tables.Figure(name, caption, png.getvalue(), svg.getvalue())
