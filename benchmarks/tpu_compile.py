"""The steps of BERT-large, compiled for a TPU that is not there.

    pip install 'swe-tf[tpu-check]'
    python -m benchmarks.tpu_compile --topology=v5e:4x4

`swe doctor tpu` on BERT-large as the paper trains it, with bfloat16.
"""

import subprocess
import sys

from absl import app
from absl import flags

_TOPOLOGY = flags.DEFINE_string("topology", "v5e:4x4", "The TPU.")
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "runs/tpu_compile", "Programs and reports."
)


def main(argv):
  sys.exit(
    subprocess.run(
      [
        sys.executable,
        "-m",
        "swe_tf.cli",
        "doctor",
        "tpu",
        "--experiment=swe/bert_pretraining",
        "--config_file=experiments/models/large.yaml",
        "--config_file=experiments/tpu.yaml",
        f"--topology={_TOPOLOGY.value}",
        f"--output_dir={_OUTPUT_DIR.value}",
        *argv[1:],
      ],
      check=False,
    ).returncode
  )


if __name__ == "__main__":
  app.run(main)
