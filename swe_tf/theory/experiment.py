"""The experiments by name, and one way to run them.

Each experiment is a module with `run(options) -> Outcome`, named after the
statement of the paper that it tests. Not for flags or exit statuses: those are
in `swe_tf.commands.theory`.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import importlib
import io
import time

from matplotlib import figure
import numpy as np

from swe_tf import files
from swe_tf.theory import algorithm1
from swe_tf.theory import claims as claims_lib

# Modules by name, imported on use: only `optimizer` loads TensorFlow.
EXPERIMENTS: Mapping[str, str] = {
  "figure2": "swe_tf.theory.figure2",
  "proposition1": "swe_tf.theory.proposition1",
  "decomposition": "swe_tf.theory.decomposition",
  "theorem1": "swe_tf.theory.theorem1",
  "theorem2": "swe_tf.theory.theorem2",
  "theorem2_proof": "swe_tf.theory.theorem2_proof",
  "theorem3": "swe_tf.theory.theorem3",
  "theorem3_proof": "swe_tf.theory.theorem3_proof",
  "depth": "swe_tf.theory.depth",
  "control": "swe_tf.theory.control",
  "optimizer": "swe_tf.theory.optimizer_check",
}


@dataclasses.dataclass(frozen=True)
class Options:
  """Options that every experiment takes.

  Attributes:
    seed: of the random targets and data.
    aggregate: what a shared update does with the gradients of the layers.
    step_scale: multiplies every step size. The step sizes in the paper are
      bounds, so a value above 1 breaks the condition of a theorem on purpose.
  """

  seed: int = 0
  aggregate: algorithm1.Aggregate = np.mean
  step_scale: float = 1.0

  def rng(self, stream: int) -> np.random.Generator:
    """Returns a generator that is independent of other streams."""
    return np.random.default_rng([self.seed, stream])

  def schedule(self, step_size, num_steps: int, untie_step: int):
    """Returns the settings of Algorithm 1, with these options applied."""
    step_size = self.step_scale * step_size
    return algorithm1.Schedule(step_size, num_steps, untie_step, self.aggregate)


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What an experiment returns.

  Attributes:
    claims: judged claims, in the order of the paper.
    drawing: the figure, if there is one.
  """

  claims: Sequence[claims_lib.Claim]
  drawing: figure.Figure | None = None


def run(
  names: Sequence[str],
  options: Options,
  output_dir: files.Path,
  log: Callable[[str], None],
) -> list[claims_lib.Claim]:
  """Runs experiments, and writes their figures and claims.

  Args:
    names: keys of `EXPERIMENTS`.
    options: passed to every experiment.
    output_dir: the directory; it need not exist.
    log: called with one line per experiment.

  Returns:
    The claims of all experiments.
  """
  results = []
  for name in names:
    start = time.perf_counter()
    # A run that diverges on purpose overflows; its claims report that.
    with np.errstate(over="ignore", invalid="ignore"):
      outcome = importlib.import_module(EXPERIMENTS[name]).run(options)
    if outcome.drawing is not None:
      png = io.BytesIO()
      outcome.drawing.savefig(png, format="png", dpi=110)
      files.write_bytes(output_dir / f"{name}.png", png.getvalue())
    results.extend(outcome.claims)
    held = sum(claim.holds for claim in outcome.claims)
    log(
      f"{name}: {held} of {len(outcome.claims)} claims hold, "
      f"{time.perf_counter() - start:.1f} s"
    )
  claims_lib.write(results, output_dir)
  return results
