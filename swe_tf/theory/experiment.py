"""The experiments by name, and one way to run them."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import io
import pkgutil
import time

from matplotlib import figure
import numpy as np

from swe_tf import files
from swe_tf import messages
from swe_tf.theory import algorithm1
from swe_tf.theory import claims as claims_lib

# Functions `(Options) -> Outcome`, imported on use, since they import this.
EXPERIMENTS: Mapping[str, str] = {
  "figure2": "swe_tf.theory.figure2:run",
  "proposition1": "swe_tf.theory.proposition1:run",
  "decomposition": "swe_tf.theory.proposition1:run_decomposition",
  "theorem1": "swe_tf.theory.theorem1:run",
  "theorem2": "swe_tf.theory.theorem2:run",
  "theorem3": "swe_tf.theory.theorem3:run",
  "depth": "swe_tf.theory.depth:run",
}


@dataclasses.dataclass(frozen=True)
class Options:
  """Options that every experiment takes."""

  seed: int = 0
  aggregate: algorithm1.Aggregate = np.mean
  # The step sizes in the paper are bounds, so a factor above 1 breaks the
  # condition of a theorem on purpose.
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
  """What an experiment returns: judged claims, and Figure 2 its drawing."""

  claims: Sequence[claims_lib.Claim]
  drawing: figure.Figure | None = None


def slope(x, y) -> float:
  """The exponent a of the power law y ~ x^a, by least squares of logarithms."""
  return np.polyfit(np.log(x), np.log(y), 1)[0]


def run(
  names: Sequence[str],
  options: Options,
  output_dir: files.Path,
  log: Callable[[str], None],
) -> list[claims_lib.Claim]:
  """Runs experiments of `EXPERIMENTS`, and writes their claims and the figure.

  `output_dir` need not exist; `log` gets one line per experiment.
  """
  results = []
  for name in names:
    start = time.perf_counter()
    # A run that diverges on purpose overflows; its claims report that.
    with (
      np.errstate(over="ignore", invalid="ignore"),
      messages.during(name, announce=False),
    ):
      outcome = pkgutil.resolve_name(EXPERIMENTS[name])(options)
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
