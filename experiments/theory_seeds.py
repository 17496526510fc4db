"""Checks whether the claims of the theory hold for other seeds too.

    python -m experiments.theory_seeds --seeds=8

runs `swe theory all` for each seed and writes docs/results/theory_seeds.json:
how many claims hold, and which do not. Takes a minute of CPU time per seed.
"""

import argparse
import json
import os
import pathlib
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # As `swe theory` does.

from swe_tf.theory import experiment

OUTPUT = pathlib.Path(__file__).parents[1] / "docs/results/theory_seeds.json"


def run(seed: int) -> dict[str, object]:
  """Returns how many claims hold for one seed, and which do not."""
  with tempfile.TemporaryDirectory() as directory:
    claims = experiment.run(
      list(experiment.EXPERIMENTS),
      experiment.Options(seed=seed),
      pathlib.Path(directory),
      lambda line: None,
    )
  failed = [claim.claim for claim in claims if not claim.holds]
  return {
    "claims": len(claims),
    "hold": len(claims) - len(failed),
    "failed": failed,
  }


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--seeds", type=int, default=8)
  results = {}
  for seed in range(parser.parse_args().seeds):
    results[seed] = run(seed)
    print(seed, results[seed], flush=True)
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
  main()
