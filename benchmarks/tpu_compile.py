r"""Compiles the steps of BERT-large for a TPU, without having one.

    pip install -c constraints.txt '.[tpu-check]'
    python -m benchmarks.tpu_compile --topology=v5e:4x4
    python -m benchmarks.tpu_compile --topology=v5e:2x4 \
      --micro_batches=1,2,4,8 -- --depths=3,5

Runs `swe doctor tpu` on BERT-large as the paper trains it, with bfloat16. Flags
for it follow `--`. With several numbers of micro-batches, a table compares
them.
"""

import json
import pathlib
import subprocess
import sys

from absl import app
from absl import flags

from swe_tf import messages

_TOPOLOGY = flags.DEFINE_string("topology", "v5e:4x4", "The TPU.")
_MICRO_BATCHES = flags.DEFINE_list(
  "micro_batches", ["1"], "Numbers of micro-batches to compile with."
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "runs/tpu_compile", "Programs and reports."
)


def _compile(micro_batches: str, arguments: list[str]) -> dict:
  """Runs `swe doctor tpu`; returns the figures that it writes."""
  status = subprocess.run(
    [
      sys.executable,
      "-m",
      "swe_tf.cli",
      "doctor",
      "tpu",
      "--experiment=swe/bert_pretraining",
      "--config_file=experiments/models/large.yaml",
      "--config_file=experiments/tpu.yaml",
      f"--params_override=task.micro_batches={micro_batches}",
      f"--topology={_TOPOLOGY.value}",
      f"--output_dir={_OUTPUT_DIR.value}",
      *arguments,
    ],
    check=False,
  ).returncode
  if status:
    sys.exit(status)
  path = pathlib.Path(_OUTPUT_DIR.value) / "tpu.json"
  return json.loads(path.read_text(encoding="utf-8"))


def _print_table(figures: dict[str, dict]) -> None:
  """Prints memory by micro-batches and kind of step, as Markdown."""
  for name in ("peak", "temporaries"):
    kinds = list(next(iter(figures.values()))["full_depth"])
    print(f"\n| {name}, micro-batches | {' | '.join(kinds)} |")
    print("|---" * (len(kinds) + 1) + "|")
    for count, found in figures.items():
      sizes = (
        messages.size(found["full_depth"][kind][name]["value"])
        for kind in kinds
      )
      print(f"| {count} | {' | '.join(sizes)} |")


def main(argv):
  figures = {count: _compile(count, argv[1:]) for count in _MICRO_BATCHES.value}
  if len(figures) > 1:
    _print_table(figures)
    path = pathlib.Path(_OUTPUT_DIR.value) / "micro_batches.json"
    path.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
  app.run(main)
