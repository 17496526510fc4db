"""Scalars of a run's TensorBoard logs, and the loss curve of one run."""

import os

Curve = list[tuple[int, float]]


def read_scalars(log_dir: str) -> dict[str, Curve]:
  """Returns every scalar of the event files in `log_dir`, sorted by step.

  Where a run was interrupted and resumed, a step may have been logged twice;
  the later value is the one that the run went on with.

  Args:
    log_dir: A folder with event files, for example `model_dir/train`.

  Returns:
    Curves by tag; empty if there are no event files.
  """
  from tensorboard.backend.event_processing import event_accumulator
  from tensorboard.util import tensor_util

  accumulator = event_accumulator.EventAccumulator(
    log_dir, size_guidance={event_accumulator.TENSORS: 0}
  )
  accumulator.Reload()
  curves = {}
  for tag in accumulator.Tags()["tensors"]:
    events = sorted(accumulator.Tensors(tag), key=lambda e: e.wall_time)
    values = {
      e.step: float(tensor_util.make_ndarray(e.tensor_proto)) for e in events
    }
    curves[tag] = sorted(values.items())
  return curves


def plot_loss(
  path: str,
  train: Curve,
  validation: Curve,
  *,
  untie_step: int | None,
  entropy: float | None = None,
  title: str = "",
) -> None:
  """Draws the loss of one run, with the untie step marked (Figure 3).

  Args:
    path: The PNG to write.
    train: The training loss by step.
    validation: The validation loss by step.
    untie_step: Tau; None if the run never shared.
    entropy: The entropy of single tokens: a model that ignores the context
      cannot do better.
    title: The title of the figure.
  """
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot as plt

  figure, axes = plt.subplots(figsize=(7, 4.2), dpi=120)
  axes.plot(*zip(*train), color="#0072B2", label="training")
  if validation:
    axes.plot(*zip(*validation), "o", color="#D55E00", label="validation")
  if untie_step:
    axes.axvline(untie_step, color="black", linestyle="--", linewidth=1)
    axes.text(
      untie_step,
      0.97,
      f" untied after step {untie_step}",
      transform=axes.get_xaxis_transform(),
      va="top",
    )
  if entropy is not None:
    axes.axhline(
      entropy, color="gray", linestyle=":", label="entropy of single tokens"
    )
  axes.set_xlabel("training step")
  axes.set_ylabel("masked LM loss (nats per token)")
  axes.set_title(title)
  axes.legend()
  figure.tight_layout()
  os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
  figure.savefig(path)
  plt.close(figure)
