r"""Compiles the steps of a run for a TPU, without a TPU.

    swe doctor tpu --experiment=swe/bert_pretraining --topology=v5e:4x4 \
      --config_file=experiments/tpu.yaml

The flags are those of `swe train`. The real compiler compiles the real steps
(stock, shared, unshared); it needs `pip install 'swe-tf[tpu-check]'`. The table
shows what fits and how many bytes are moved, not how long a step takes. With
`--fit` it finds the fewest micro-batches with which all steps fit; with
`--loop` it compiles the trainer's loop instead of one step.
"""

import dataclasses
import functools
from typing import Any

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import doctor
from swe_tf.commands import early
from swe_tf.commands import options as options_lib
from swe_tf.commands import stock_options
from swe_tf.doctor.tpu import topologies


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The flags of `swe train`, and those of the compiler."""

  topology: str = options_lib.flag("The TPU, such as v5e:2x2.", "v5e:2x2")
  depths: tuple[int, ...] = options_lib.flag(
    "Numbers of layers to compile: three, from which the full depth is "
    "extrapolated, two, which leaves the extrapolation unchecked, or one. The "
    "default is 3, 4 and 5 units.",
    (),
  )
  fit: bool = options_lib.flag(
    "Find the smallest task.micro_batches that makes the steps fit.", False
  )
  loop: bool = options_lib.flag(
    "Compile the loop of trainer.steps_per_loop steps, not a single step.",
    False,
  )
  output_dir: str = options_lib.flag(
    "Directory for programs and reports; programs already there are not "
    "recompiled.",
    "runs/doctor_tpu",
  )
  jobs: int = options_lib.flag(
    "Number of parallel compilers, at 2 GB of memory each.", 2, lower_bound=1
  )


def _refuse_too_large(reports: dict[str, Any], topology: str) -> None:
  for kind, by_depth in reports.items():
    for depth, report in by_depth.items():
      if "too_large" in report:
        raise errors.Failed(
          f"the {kind} step does not fit {topology} even with {depth} layers: "
          f"{report['too_large']}"
        )


def run(options: Options) -> None:
  """Compiles the steps, prints the table and writes the figures."""
  topology = topologies.parse(options.topology)
  early.check_plan(options)
  files.check_output_dir(options.output_dir, "output_dir")
  # TensorFlow takes seconds to import.
  from swe_tf.doctor.tpu import depths as depths_lib
  from swe_tf.doctor.tpu import fit
  from swe_tf.doctor.tpu import programs
  from swe_tf.doctor.tpu import step_kinds
  from swe_tf.doctor.tpu import summary

  versions = programs.require_compiler()
  config = doctor.read_config(options)
  programs.check_batch(config, topology)
  depths = list(options.depths) or depths_lib.choose(config)
  depths_lib.check(config, depths)
  all_layers = depths_lib.num_layers(config)
  # A single depth leaves nothing to extrapolate from.
  layers = depths[0] if len(depths) == 1 else all_layers
  console = rich_console.Console()
  say = functools.partial(console.print, soft_wrap=True)
  output_dir = files.as_path(options.output_dir)
  loop_steps = config.trainer.steps_per_loop if options.loop else None
  compile_steps = functools.partial(
    programs.compile_steps,
    topology=topology,
    depths=depths,
    directory=output_dir,
    jobs=options.jobs,
    say=say,
    loop_steps=loop_steps,
  )
  if options.fit:
    count, reports = fit.fewest(config, topology, layers, compile_steps, say)
    config = fit.with_micro_batches(config, count)
  else:
    reports = compile_steps(config)
    _refuse_too_large(reports, topology.name)
  found = {
    kind: depths_lib.extrapolate(reports[kind], layers) for kind in reports
  }
  batch = config.task.train_data.global_batch_size
  parts = config.task.micro_batches
  title = (
    f"{layers} layers, {topology.name}, {topology.replicas} replicas of "
    f"{batch // topology.replicas} sequences"
    + (f", {parts} micro-batches" if parts > 1 else "")
    + (f", a loop of {loop_steps} steps" if loop_steps else "")
  )
  console.print(summary.make_table(found, topology, title))
  say(
    f"compiled with {versions} at {depths} layers; "
    f"{summary.how_far_from_a_line(found, depths)}"
  )
  if parts > 1:
    say(
      "XLA counts the FLOPs and bytes of a loop once, so these two cover one "
      "micro-batch and the update"
    )
  elif layers == all_layers:
    say(summary.against_cost_model(config, found, topology.replicas))
  same = reports[step_kinds.STOCK] == reports[step_kinds.UNSHARED]
  say(
    "the unshared step is the stock step, program for program"
    if same
    else "the unshared step is not the stock step"
  )
  path = output_dir / "tpu.json"
  figures = {
    "topology": topology.name,
    "replicas": topology.replicas,
    "layers": layers,
    "global_batch_size": batch,
    "micro_batches": parts,
    "loop_steps": loop_steps,
    "versions": versions,
    "reports": reports,
    "full_depth": {
      kind: {
        name: dataclasses.asdict(estimate)
        for name, estimate in estimates.items()
      }
      for kind, estimates in found.items()
    },
  }
  files.write_json(path, figures)
  say(f"figures in {path}")
  if options.fit:
    say(f"it fits with --params_override=task.micro_batches={parts}")
    for line in fit.advise_slices(config, topology):
      say(line)
