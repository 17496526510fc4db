"""Computes the paper's theory and checks its claims.

    swe theory all --output_dir=DIR
    swe theory theorem1 depth --output_dir=DIR
    swe theory all --output_dir=DIR --step_scale=2     # breaks a condition

Writes `claims.json`, `claims.md` and Figure 2 into the directory. The exit
status is 1 if a proved claim does not hold.
"""

import dataclasses
import os

# Read when numpy loads. The matrices here are small: BLAS threads cost more
# than they save, ten times more on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import rich.console

from swe_tf import files
from swe_tf.commands import options as opt
from swe_tf.theory import claims as claims_lib
from swe_tf.theory import experiment


@dataclasses.dataclass(frozen=True)
class Options:
  experiments: tuple[str, ...] = opt.argument(
    "The experiments.", choices=("all", *experiment.EXPERIMENTS)
  )
  output_dir: str = opt.flag("Directory for the claims and Figure 2.")
  seed: int = opt.flag("Seed for random targets and data.", 0, least=0)
  aggregate: str = opt.flag(
    "How a shared update combines the layers' gradients; the paper: the mean.",
    "mean",
    choices=("mean", "sum"),
  )
  step_scale: float = opt.flag(
    "Multiplies every step size; above 1 breaks a condition.", 1.0, least=1.0
  )


def run(options: Options) -> int:
  files.check_output_dir(options.output_dir, "output_dir")
  output_dir = files.as_path(options.output_dir)
  console = rich.console.Console()
  names = options.experiments
  claims = experiment.run(
    list(experiment.EXPERIMENTS) if "all" in names else names,
    experiment.Options(
      seed=options.seed,
      aggregate=np.mean if options.aggregate == "mean" else np.sum,
      step_scale=options.step_scale,
    ),
    output_dir,
    console.print,
  )
  claims_lib.show(claims, console)
  failed = [claim for claim in claims if not claim.holds]
  console.print(
    f"{len(claims) - len(failed)} of {len(claims)} claims hold; "
    f"the table is in {output_dir}"
  )
  return int(any(claim.proved for claim in failed))
