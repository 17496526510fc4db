"""The figures of the demo's page, each narrow enough for a phone."""

import base64
import io
from typing import Any, NamedTuple

from swe_tf.studies.demo import story as story_lib

_SIZE = (5.6, 3.7)
# From Okabe and Ito's palette, which colour-blind readers can tell apart.
_MODEL, _BASELINE = "#0072B2", "#D55E00"


class Figure(NamedTuple):
  """A drawn figure.

  Attributes:
    svg: The SVG file.
    caption: What it shows.
  """

  svg: bytes
  caption: str

  @property
  def base64(self) -> str:
    return base64.b64encode(self.svg).decode("ascii")


def draw_losses(story: story_lib.Story) -> Figure:
  """Draws the training and validation losses of both runs (Figure 3)."""
  drawing, axes = _panel()
  for (name, arm), colour in zip(story.arms().items(), (_MODEL, _BASELINE)):
    losses = arm.validation["validation_loss"]
    axes.plot(*zip(*losses), label=name, linewidth=2, color=colour)
    training = arm.train["training_loss"]
    axes.plot(*zip(*training), linewidth=0.8, alpha=0.45, color=colour)
  label = "entropy of single characters"
  axes.axhline(story.entropy, color="gray", linestyle=":", label=label)
  _mark_untying(axes, story)
  _finish(axes, "loss (nats per token)")
  return _save(
    drawing,
    "Validation loss (thick) and training loss (thin). A model above the "
    "dotted line does worse than one that only knows how frequent each "
    "character is.",
  )


def draw_gradient_cosine(story: story_lib.Story) -> Figure:
  """Draws how much the layers' gradients agreed while shared."""
  drawing, axes = _panel()
  axes.plot(*zip(*story.model.gradient_cosine), "o-", color=_MODEL)
  _mark_untying(axes, story)
  axes.set_ylim(-0.1, 1.05)
  axes.set_xlim(left=0)
  _finish(axes, "cosine between gradients")
  return _save(
    drawing,
    "The mean cosine between the gradients of two layers while they share "
    "weights: at 1 all layers want the same update.",
  )


def draw_drift(story: story_lib.Story) -> Figure:
  """Draws how far the layers drifted apart."""
  drawing, axes = _panel()
  axes.plot(*zip(*story.model.drift), color=_MODEL, linewidth=2)
  _mark_untying(axes, story)
  axes.set_xlim(left=0)
  _finish(axes, "distance from the mean layer")
  return _save(
    drawing,
    "How far the layers are from their mean, relative to its norm: 0 while "
    "they are shared.",
  )


def draw_layer_cosines(name: str, arm: story_lib.Arm) -> Figure:
  """Draws the final cosine between the kernels of every two layers."""
  drawing, axes = _panel()
  rows = arm.result["layer_cosines"]
  end = len(rows) + 0.5
  image = axes.imshow(
    rows, vmin=0, vmax=1, cmap="cividis", extent=(0.5, end, end, 0.5)
  )
  drawing.colorbar(image, ax=axes)
  axes.set_xlabel("layer", fontsize=12)
  axes.set_ylabel("layer", fontsize=12)
  axes.set_title(name, fontsize=12)
  return _save(
    drawing,
    f"{name}: the cosine between the kernels of each two layers at the end; "
    f"their mean is {arm.mean_layer_cosine:.2f}.",
  )


def _panel() -> tuple[Any, Any]:
  from matplotlib import figure

  drawing = figure.Figure(figsize=_SIZE, layout="constrained")
  return drawing, drawing.subplots()


def _mark_untying(axes, story: story_lib.Story) -> None:
  tau = story.model.untie_step
  if tau:
    label = f"untied after step {tau:,}"
    axes.axvline(tau, color="black", linestyle="--", linewidth=1, label=label)


def _finish(axes, y: str) -> None:
  axes.set_xlabel("training step", fontsize=12)
  axes.set_ylabel(y, fontsize=12)
  axes.tick_params(labelsize=11)
  axes.grid(alpha=0.25)
  if axes.get_legend_handles_labels()[0]:
    axes.legend(fontsize=10)


def _save(drawing, caption: str) -> Figure:
  import matplotlib

  svg = io.BytesIO()
  with matplotlib.rc_context({"svg.hashsalt": caption}):
    drawing.savefig(svg, format="svg", metadata={"Date": None})
  return Figure(svg.getvalue(), caption)
