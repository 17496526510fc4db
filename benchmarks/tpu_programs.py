r"""Compiles every kind of program that a TPU would run, without having one.

    pip install -c constraints.txt '.[tpu-check]'
    python -m benchmarks.tpu_programs                                  # hours
    python -m benchmarks.tpu_programs --runs=glue,squad --depths=3,5
    python -m benchmarks.tpu_programs --runs=large --programs=stock --depths=24
    python -m benchmarks.tpu_programs --runs=                 # only the table

As `swe doctor tpu` does for one experiment. Programs that were compiled before
are not compiled again, and each is added to `--results` when it is done; the
table in Markdown has all of them.
"""

import json
import pathlib

from absl import app
from absl import flags

from benchmarks import common
from swe_tf import messages
from swe_tf.commands import doctor_tpu
from swe_tf.commands import stock_options
from swe_tf.doctor.tpu import depths as depths_lib
from swe_tf.doctor.tpu import programs
from swe_tf.doctor.tpu import topologies
from tests.studies.finetune import samples

_PRETRAINING = "swe/bert_pretraining"
_GROWTH = "task.sharing.mode=none,task.growth.method"
# The size; then the experiment, what overrides it, and the TPU.
_RUNS = {
  "large": ("large", _PRETRAINING, "task.micro_batches=8", "v5e:2x4"),
  "large_4": ("large", _PRETRAINING, "task.micro_batches=4", "v5e:2x4"),
  "base": ("base", _PRETRAINING, "", "v5e:4x4"),
  "units_2": ("base", _PRETRAINING, "task.sharing.unit_size=2", "v5e:4x4"),
  "one_loop": (
    *("base", _PRETRAINING, "task.sharing.recipe=one_loop", "v5e:4x4"),
  ),
  "few_loops": (
    *("base", _PRETRAINING, "task.sharing.recipe=few_loops", "v5e:4x4"),
  ),
  "net2net": ("base", _PRETRAINING, f"{_GROWTH}=net2net", "v5e:4x4"),
  "stacking": ("base", _PRETRAINING, f"{_GROWTH}=stacking", "v5e:4x4"),
  "squad": ("large", "swe/squad", "", "v5e:2x2"),
  "glue": ("large", "swe/glue", "", "v5e:2x2"),
  "regression": ("large", "swe/glue", "", "v5e:2x2"),
}
# What is prepared for fine-tuning, and its length.
_DATA = {
  "squad": ("squad_v1.1", 384),
  "glue": ("SST-2", 128),
  "regression": ("STS-B", 128),
}
_NAMES = flags.DEFINE_list("runs", list(_RUNS), "Which to compile.")
_PROGRAMS = flags.DEFINE_list("programs", [], "Only these of their programs.")
_DEPTHS = flags.DEFINE_list("depths", [], "As of `swe doctor tpu`.")
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "runs/tpu_programs", "Programs and reports."
)
_RESULTS = flags.DEFINE_string(
  "results", "docs/results/tpu/programs.json", "The figures of all programs."
)


def _config(name: str, directory: pathlib.Path):
  size, experiment, overrides, _ = _RUNS[name]
  if name in _DATA:
    task, length = _DATA[name]
    place = directory / task / "data" / task
    if not place.exists():
      (directory / task).mkdir(parents=True)
      samples.write_data(task, directory / task, max_seq_length=length)
    overrides = f"task.data_dir={place}"
  files = [f"experiments/models/{size}.yaml", "experiments/tpu.yaml"]
  options = doctor_tpu.Options(
    experiment=experiment, config_file=files, params_override=overrides or None
  )
  return stock_options.read_config(options, must_share=False)


def _compile(name: str, results: dict[str, dict]) -> None:
  """Compiles the programs of a run; adds the figures of each."""
  directory = pathlib.Path(_OUTPUT_DIR.value)
  directory.mkdir(parents=True, exist_ok=True)
  config = _config(name, directory)
  size, *_, topology_name = _RUNS[name]
  topology = topologies.parse(topology_name)
  programs.check_batch(config, topology)
  depths = depths_lib.choose(config, [int(d) for d in _DEPTHS.value])
  for kind in _PROGRAMS.value or depths:
    reports = programs.compile_steps(
      config, topology, depths, directory, 1, print, [kind]
    )[kind]
    layers = depths_lib.num_layers(config)
    if len(reports) == 1:
      (layers,) = reports
    figures = {}
    if not any("too_large" in each for each in reports.values()):
      found = depths_lib.extrapolate(reports, layers)
      figures = {each: found[each].value for each in found}
    # A line through other depths is another row.
    row = f"{name}: {kind}, {','.join(map(str, reports))}"
    results[row] = {
      "run": name,
      "program": kind,
      "model": f"BERT-{size}",
      "topology": topology_name,
      "micro_batches": config.task.micro_batches,
      "versions": programs.require_compiler(),
      "layers": layers,
      "reports": reports,
      "figures": figures,
    }
    common.write_figures(_RESULTS.value, results)


def _print_table(results: dict[str, dict]) -> None:
  print(
    "\n| run | program | micro-batches | compiled | for | fits | peak | FLOPs "
    "| all-reduce |"
  )
  print("|---" * 9 + "|")
  for name in _RUNS:
    for row in (row for row in results.values() if row["run"] == name):
      figures = row["figures"]
      hbm = topologies.parse(row["topology"]).generation.hbm
      fits = bool(figures) and figures["peak"] <= hbm
      is_real = str(row["layers"]) in row["reports"]
      cells = [
        f"{name} ({row['model']}, {row['topology']})",
        row["program"],
        str(row["micro_batches"]),
        ", ".join(row["reports"]),
        f"{row['layers']} layers",
        # A line from fewer layers can be far too low.
        ("yes" if is_real else "by the line") if fits else "no",
      ]
      if figures:
        cells += [
          messages.size(figures["peak"]),
          f"{figures['flops'] / 1e12:.4g} T",
          messages.size(figures["all_reduce"]),
        ]
      else:  # The results say what the compiler says.
        cells += ["more", "", ""]
      print(f"| {' | '.join(cells)} |")


def main(_):
  path = pathlib.Path(_RESULTS.value)
  results = json.loads(path.read_text("utf-8")) if path.exists() else {}
  for name in _NAMES.value:
    _compile(name, results)
  # As read back: the depths are text.
  _print_table(json.loads(json.dumps(results)))


if __name__ == "__main__":
  app.run(main)
