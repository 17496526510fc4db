"""What the two runs of the demo show, read from their directories.

Only numbers and sentences; `page` and `figures` present them. Imports no
TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any

from swe_tf.analysis import scalars
from swe_tf.studies import execution

# Seeds of such models scatter by 0.03 to 0.08 nats (docs/map.md), so one run
# each cannot resolve a smaller difference.
TIE = 0.03


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arm:
  """One of the two finished runs.

  Attributes:
    result: Its `result.json`.
    train: Training curves by tag.
    validation: Validation curves by tag.
    flops: The FLOPs of the run.
    seq_length: Tokens per sequence.
    tokens_per_step: Tokens per step.
  """

  result: Mapping[str, Any]
  train: Mapping[str, scalars.Curve]
  validation: Mapping[str, scalars.Curve]
  flops: float
  seq_length: int
  tokens_per_step: int

  @classmethod
  def read(cls, run: execution.Run) -> "Arm":
    """Reads the result and the curves of a finished run."""
    train, validation = (
      scalars.read_scalars(str(run.directory.path / part))
      for part in ("train", "validation")
    )
    data = run.config.task.train_data
    return cls(
      result=run.directory.read_result() or {},
      train=train,
      validation=validation,
      flops=run.cost,
      seq_length=data.seq_length,
      tokens_per_step=data.global_batch_size * data.seq_length,
    )

  @property
  def loss(self) -> float:
    """The final validation loss."""
    return self.result["metrics"]["validation_loss"]

  @property
  def steps(self) -> int:
    return self.result["steps"]

  @property
  def untie_step(self) -> int | None:
    tau = self.train.get("sharing/untie_step")
    return int(tau[-1][1]) if tau else None  # A run that never shares.

  @property
  def drift(self) -> scalars.Curve:
    """How far the layers are from their mean, from the untie step on."""
    curve = self.train.get("sharing/distance_from_mean", [])
    return [(self.untie_step, 0.0), *curve] if self.untie_step else curve

  @property
  def gradient_cosine(self) -> scalars.Curve:
    """The mean cosine between the layers' gradients, while shared."""
    return self.train.get("sharing/gradient_cosine", [])

  @property
  def mean_layer_cosine(self) -> float:
    """The final mean cosine between the kernels of two layers, rounded.

    Never a negative zero, which confuses readers.
    """
    rows = self.result["layer_cosines"]
    pairs = [c for i, row in enumerate(rows) for c in row[:i]]
    return round(sum(pairs) / len(pairs), 2) + 0.0 if pairs else math.nan


@dataclasses.dataclass(frozen=True)
class Story:
  """Both runs.

  Attributes:
    model: The run that shares, or the only run.
    baseline: The run that does not; None if the model does not share either.
    entropy: The entropy of single characters in nats.
  """

  model: Arm
  baseline: Arm | None
  entropy: float

  def arms(self) -> dict[str, Arm]:
    """Returns the runs by name, for figures and tables."""
    is_untied = self.model.untie_step is not None
    found = {"shared, then untied" if is_untied else "model": self.model}
    return found | ({"baseline": self.baseline} if self.baseline else {})

  @property
  def is_tie(self) -> bool:
    """Whether the two are too close to call with one run each."""
    assert self.baseline is not None
    return abs(self.model.loss - self.baseline.loss) < TIE

  def verdict(self) -> str:
    """Returns the outcome in one sentence."""
    model, baseline = self.model, self.baseline
    if baseline is None:
      return (
        f"Nothing was shared, so there is nothing to compare: after "
        f"{model.steps:,} steps the model ended at {model.loss:.3f} nats per "
        "token."
      )
    ended = (
      f"After the same {model.steps:,} steps the shared model ended at "
      f"{model.loss:.3f} nats per token and the baseline at {baseline.loss:.3f}"
    )
    difference = model.loss - baseline.loss
    if not math.isfinite(difference):
      return f"{ended}: a run that diverges has no verdict."
    if self.is_tie:
      return (
        f"{ended}: too close to call with one seed each (they differ by "
        f"{abs(difference):.3f}, less than seeds do)."
      )
    won = "won" if difference < 0 else "lost"
    return (
      f"{ended}: sharing {won} {abs(difference):.3f} nats here, with one seed; "
      "docs/map.md says when it pays."
    )

  def steps_text(self) -> str:
    """Returns a sentence on how many steps sharing saved or lost."""
    model, baseline = self.model, self.baseline
    assert baseline is not None
    if not math.isfinite(model.loss - baseline.loss):
      return "A run diverged, so there are no steps to count."
    ahead, behind, names = (model, baseline, ("shared model", "baseline"))
    word = "saved"
    if model.loss > baseline.loss:
      ahead, behind, names = (baseline, model, ("baseline", "shared model"))
      word = "lost"
    reached = scalars.steps_to_reach(
      ahead.validation["validation_loss"], behind.loss
    )
    assert reached is not None  # It ended lower.
    steps = round(ahead.steps - reached)
    return (
      f"The {names[0]} reached the {names[1]}'s final loss after "
      f"{reached:,.0f} of {ahead.steps:,} steps: sharing {word} {steps:,} "
      f"{'step' if steps == 1 else 'steps'}, {steps / ahead.steps:.0%} of the "
      f"budget{', which is noise' if self.is_tie else ''}."
    )

  def flops_text(self) -> str:
    """Returns a sentence that compares the FLOPs of both runs."""
    assert self.baseline is not None
    ratio = self.model.flops / self.baseline.flops
    if abs(ratio - 1) < 0.005:
      return "Both runs read the same tokens and spent the same FLOPs."
    return (
      "Both runs read the same tokens, but the shared model spent only "
      f"{ratio:.2f} of the baseline's FLOPs: it applies fewer layers while "
      "they are shared."
    )
