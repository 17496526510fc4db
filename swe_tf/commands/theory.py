"""The `swe theory` command: runs the paper's theory and judges its claims.

    swe theory all --output_dir=DIR
    swe theory theorem1 depth --output_dir=DIR
    swe theory all --output_dir=DIR --step_scale=2     # breaks a condition

Writes `claims.json`, `claims.md` and the figures into the directory. The exit
status is 1 if a proved claim does not hold, 2 if the command was misused.
"""

from collections.abc import Sequence
import os
import pathlib
import sys

# Both are read when the libraries load. The matrices here are small: threads
# of BLAS cost more than they give, on a busy machine ten times more. And what
# TensorFlow says of GPUs that are not there would bury the table.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app
from absl import flags
import numpy as np
import rich.console

from swe_tf.theory import claims as claims_lib
from swe_tf.theory import experiment

_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", None, "Directory for claims.json, claims.md and figures."
)
_SEED = flags.DEFINE_integer(
  "seed", 0, "Seed of the random targets and data.", lower_bound=0
)
_AGGREGATE = flags.DEFINE_enum(
  "aggregate",
  "mean",
  ["mean", "sum"],
  "What a shared update does with the gradients of the layers. The paper "
  "takes the mean; the sum shows what the claims are worth.",
)
_STEP_SCALE = flags.DEFINE_float(
  "step_scale",
  1.0,
  "Multiplies every step size: above 1, the conditions "
  "of the paper are broken on purpose.",
  lower_bound=1.0,
)


def _refuse(message: str) -> int:
  print(f"swe theory: {message}", file=sys.stderr)
  return 2


def main(argv: Sequence[str]) -> int:
  """Runs the experiments named on the command line."""
  known = ", ".join(["all", *experiment.EXPERIMENTS])
  names = argv[1:]
  if not names:
    return _refuse(f"no experiment given; name at least one of: {known}.")
  for name in names:
    if name != "all" and name not in experiment.EXPERIMENTS:
      return _refuse(f"unknown experiment {name!r}; choose from: {known}.")
  if not _OUTPUT_DIR.value:
    return _refuse(
      "--output_dir is missing; name a directory for the "
      "results, such as --output_dir=/tmp/theory."
    )
  output_dir = pathlib.Path(_OUTPUT_DIR.value)
  try:
    output_dir.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    return _refuse(
      f"--output_dir={output_dir} cannot be made a directory "
      f"({error.strerror}); name another one."
    )

  console = rich.console.Console()
  options = experiment.Options(
    seed=_SEED.value,
    aggregate={"mean": np.mean, "sum": np.sum}[_AGGREGATE.value],
    step_scale=_STEP_SCALE.value,
  )
  claims = experiment.run(
    list(experiment.EXPERIMENTS) if "all" in names else names,
    options,
    output_dir,
    console.print,
  )

  claims_lib.show(claims, console)
  failed = [claim for claim in claims if not claim.holds]
  console.print(
    f"{len(claims) - len(failed)} of {len(claims)} claims hold; "
    f"table and figures are in {output_dir}"
  )
  return int(any(claim.proved for claim in failed))


if __name__ == "__main__":
  app.run(main)
