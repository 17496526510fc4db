r"""The `swe doctor tpu` command: compiles the steps for a TPU, without a TPU.

    swe doctor tpu --experiment=swe/bert_pretraining --topology=v5e:4x4 \
      --config_file=experiments/tpu.yaml

The flags are those of `swe train`. The real steps (stock, shared, unshared) are
given to the real compiler, which needs `pip install 'swe-tf[tpu-check]'`. It
says what fits and what is moved, not how long a step takes.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import json
import pathlib

from absl import flags
from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import experiment
from swe_tf.doctor import steps
from swe_tf.doctor import topologies
from swe_tf.doctor import tpu
from swe_tf.doctor import units_of_measure as show


def define_flags() -> None:
  """Defines the flags of the command."""
  experiment.define_flags()
  flags.DEFINE_string("topology", "v5e:2x2", "The TPU, such as v5e:2x2.")
  flags.DEFINE_list(
    "depths",
    [],
    "Numbers of layers to compile: three, from which the full "
    "depth is extrapolated, or one. By default 3, 4 and 5 units.",
  )
  flags.DEFINE_string(
    "output_dir",
    "runs/doctor_tpu",
    "Keeps programs and reports; what is there is not compiled again.",
  )
  flags.DEFINE_integer(
    "jobs", 2, "Compilers at a time, 2 GB of memory each.", lower_bound=1
  )


_ROWS = {
  "peak": ("peak memory", show.size),
  "arguments": ("arguments", show.size),
  "temporaries": ("temporaries", show.size),
  "flops": ("flops", show.flops),
  "bytes": ("bytes", show.size),
  "all_reduce": ("all-reduce", show.size),
}
_UNKNOWN = "?"


def make_table(
  found: Mapping[str, Mapping[str, tpu.Estimate]],
  topology: topologies.Topology,
  title: str,
) -> rich_table.Table:
  """Returns the table; what cannot be extrapolated is a question mark."""
  table = rich_table.Table("each replica", *found, "shared/stock", title=title)

  def fits(peak):
    if not peak.holds:
      return _UNKNOWN
    return "yes" if peak.value <= topology.generation.hbm else "no"

  table.add_row("fits", *(fits(found[kind]["peak"]) for kind in found), "")
  for name, (label, render) in _ROWS.items():
    row = {kind: found[kind][name] for kind in found}
    stock, shared = row[steps.STOCK], row[steps.SHARED]
    # A small model may need no temporaries outside of the chip's caches.
    ratio = (
      f"{shared.value / stock.value:.4f}"
      if stock.value and stock.holds and shared.holds
      else ""
    )
    table.add_row(
      label,
      *(render(one.value) if one.holds else _UNKNOWN for one in row.values()),
      ratio,
    )
  return table


def how_far_from_a_line(found) -> str:
  """Says how good the extrapolation is, and what to do if it is not."""
  deviations = [
    (abs(estimates[name].deviation), f"{label} of the {kind} step")
    for kind, estimates in found.items()
    for name, (label, _) in _ROWS.items()
    if estimates[name].deviation is not None
  ]
  if not deviations:
    return "compiled at its full depth: nothing is extrapolated"
  worst, name = max(deviations)
  text = (
    f"the line is checked at the depth between: off by {worst:.2%} at "
    f"most ({name})"
  )
  if all(
    estimates[name].holds for estimates in found.values() for name in _ROWS
  ):
    return text
  return (
    f"{text}. What is off by more than 5% is no line, and shown as "
    f"{_UNKNOWN}: compile deeper models with --depths"
  )


def _against_cost_model(config, found, replicas: int) -> str:
  """Says how far `swe doctor cost` is from what the compiler counts."""
  cost = cost_lib.estimate(config)
  counted = found[steps.STOCK]["flops"].value
  payloads = {
    kind: found[kind]["all_reduce"].value / phase.all_reduce_bytes - 1
    for kind, phase in cost.phases.items()
  }
  return (
    f"against swe doctor cost, the compiler counts "
    f"{counted * replicas / cost.flops_per_step - 1:+.2%} FLOPs, "
    + ", ".join(
      f"{off:+.2%} all-reduce {kind}" for kind, off in payloads.items()
    )
  )


def main(argv: Sequence[str]) -> None:
  """Compiles the steps of the experiment that the flags name."""
  if len(argv) > 1:
    raise errors.UsageError(f"swe doctor tpu takes flags, got {argv[1]!r}.")
  values = flags.FLAGS
  versions = tpu.require_compiler()
  topology = topologies.parse(values.topology)
  config = experiment.read_config()
  try:
    depths = [int(depth) for depth in values.depths] or tpu.depths_of(config)
  except ValueError as error:
    raise errors.UsageError(f"--depths: {error}.") from error
  tpu.check(config, topology, depths)
  console = rich_console.Console()
  layers = config.task.model.encoder.get().num_layers
  if len(depths) == 1:
    layers = depths[0]
  reports = tpu.compile_steps(
    config,
    topology,
    depths,
    pathlib.Path(values.output_dir),
    values.jobs,
    say=lambda text: console.print(text, soft_wrap=True),
  )
  for kind, by_depth in reports.items():
    for depth, report in by_depth.items():
      if "too_large" in report:
        raise errors.UsageError(
          f"the {kind} step does not fit {topology.name} with {depth} "
          f"layers already: {report['too_large']}"
        )
  found = {kind: tpu.extrapolate(reports[kind], layers) for kind in reports}
  batch = config.task.train_data.global_batch_size
  console.print(
    make_table(
      found,
      topology,
      f"{layers} layers, {topology.name}, {topology.replicas} replicas of "
      f"{batch // topology.replicas} sequences",
    )
  )
  console.print(
    f"compiled with {versions} at {depths} layers; "
    f"{how_far_from_a_line(found)}",
    soft_wrap=True,
  )
  if layers == config.task.model.encoder.get().num_layers:
    console.print(
      _against_cost_model(config, found, topology.replicas), soft_wrap=True
    )
  same = all(
    reports[steps.STOCK][d] == reports[steps.UNSHARED][d] for d in depths
  )
  console.print(
    "the unshared step is the stock step, program for program"
    if same
    else "the unshared step is not the stock step"
  )
  path = pathlib.Path(values.output_dir) / "tpu.json"
  path.write_text(
    json.dumps(
      {
        "topology": topology.name,
        "replicas": topology.replicas,
        "layers": layers,
        "global_batch_size": batch,
        "versions": versions,
        "reports": reports,
        "full_depth": {
          kind: {
            name: dataclasses.asdict(estimate)
            for name, estimate in estimates.items()
          }
          for kind, estimates in found.items()
        },
      },
      indent=2,
    ),
    encoding="utf-8",
  )
  console.print(f"figures in {path}", soft_wrap=True)
