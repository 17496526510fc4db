r"""Compiles the steps of a run for a TPU, without a TPU.

    swe doctor tpu --experiment=swe/bert_pretraining --topology=v5e:4x4 \
      --config_file=experiments/tpu.yaml

The flags are those of `swe train`. The real compiler compiles the real steps:
stock, one for each phase of the method, and the evaluation; it needs the extra
`tpu-check`, from a clone `pip install -c constraints.txt '.[tpu-check]'`. The
table shows what fits and how many bytes are moved, not how long a step takes.
With `--fit` it finds the fewest micro-batches with which all steps fit.
"""

import dataclasses
import functools

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.doctor.tpu import topologies


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  topology: str = opt.flag("The TPU, such as v5e:2x2.", "v5e:2x2")
  depths: tuple[int, ...] = opt.flag(
    "Numbers of layers to compile: three, from which the full depth is "
    "extrapolated, two (unchecked), or one; by default mostly 3, 4 and 5.",
    (),
  )
  fit: bool = opt.flag("Find the smallest task.micro_batches that fits.", False)
  output_dir: str = opt.flag(
    "Directory for programs and reports, which are reused.", "runs/doctor_tpu"
  )
  jobs: int = opt.flag("Parallel compilers, at 2 GB each.", 2, least=1)


def run(options: Options) -> None:
  topology = topologies.parse(options.topology)
  options.check_files()
  files.check_output_dir(options.output_dir, "output_dir")
  with messages.during("starting TensorFlow", announce=False):
    from swe_tf.doctor.tpu import depths as depths_lib
    from swe_tf.doctor.tpu import programs

  versions = programs.require_compiler()
  config = stock_options.read_config(options, must_share=False)
  programs.check_batch(config, topology)
  depths = depths_lib.choose(config, options.depths)
  # A single depth leaves nothing to extrapolate from.
  layers = depths_lib.num_layers(config)
  if len(options.depths) == 1:
    (layers,) = options.depths
  console = rich_console.Console()
  say = functools.partial(console.print, soft_wrap=True)
  output_dir = files.as_path(options.output_dir)
  compile_steps = functools.partial(
    programs.compile_steps,
    topology=topology,
    depths=depths,
    directory=output_dir,
    jobs=options.jobs,
    say=say,
  )
  if options.fit:
    config, reports = programs.fewest_micro_batches(
      config, topology, layers, compile_steps, say
    )
  else:
    reports = compile_steps(config)
  for kind, by_depth in reports.items():
    for depth, report in by_depth.items():
      if "too_large" in report:
        raise errors.Failed(
          f"the {kind} step does not fit {topology.name} even with {depth} "
          f"layers: {report['too_large']}"
        )
  found = {
    kind: depths_lib.extrapolate(reports[kind], layers) for kind in reports
  }
  batch = config.task.train_data.global_batch_size
  parts = config.task.micro_batches
  title = (
    f"{layers} layers, {topology.name}, {topology.replicas} replicas of "
    f"{batch // topology.replicas} sequences"
    + (f", {parts} micro-batches" if parts > 1 else "")
  )
  console.print(depths_lib.make_table(found, topology, title))
  compiled = {kind: list(reports[kind]) for kind in reports}
  say(
    f"compiled with {versions} at "
    + ", ".join(f"{at} layers ({kind})" for kind, at in compiled.items())
    + f"; {depths_lib.how_far_from_a_line(found, compiled)}"
  )
  if parts > 1:
    say(
      "XLA counts the FLOPs and bytes of a loop once, so these two cover one "
      "micro-batch and the update"
    )
  first, *phases, _ = reports  # Fine-tuning has no phases.
  for last in phases[-1:]:
    same = reports[first] == reports[last]
    say(
      f"the {last} step is {'' if same else 'not '}the {first} step"
      + (", program for program" if same else "")
    )
  figures = {
    "topology": topology.name,
    "replicas": topology.replicas,
    "layers": layers,
    "global_batch_size": batch,
    "micro_batches": parts,
    "versions": versions,
    "reports": reports,
    "full_depth": {
      kind: {name: dataclasses.asdict(each) for name, each in of_kind.items()}
      for kind, of_kind in found.items()
    },
  }
  files.write_json(output_dir / "tpu.json", figures)
  say(f"figures in {output_dir / 'tpu.json'}")
  if options.fit:
    say(f"it fits with --params_override=task.micro_batches={parts}")
