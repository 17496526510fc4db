r"""Estimates what a run will cost.

    swe doctor cost --experiment=swe/bert_pretraining \
      --config_file=experiments/models/base.yaml --chip=v5e --chips=8

The flags are those of `swe train`, and the chips to compute hours and dollars
for. No data is read and nothing is trained.
"""

import dataclasses

from rich import console as rich_console
from rich import table as rich_table

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.commands import stock_options
from swe_tf.doctor.tpu import topologies


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  output: str | None = opt.flag("A JSON file for the figures.", None)
  chip: str = opt.flag("A TPU.", "v5e", choices=topologies.PRICED)
  chips: int = opt.flag("How many of them.", 8, least=1)
  utilization: float = opt.flag(
    "The fraction of the chips' peak that is used.",
    topologies.UTILIZATION,
    least=0.01,
    most=1.0,
  )
  price: float | None = opt.flag(
    "Dollars per chip and hour; by default the list price.", None, least=0.0
  )


def run(options: Options) -> None:
  config = stock_options.read_config(options)
  from swe_tf.configs import cost as cost_lib

  cost = cost_lib.estimate(config)
  console = rich_console.Console()
  whole = rich_table.Table("the run", "", title=f"units {cost.units}")
  whole.add_row("parameters", f"{cost.parameters:,}")
  whole.add_row("of these in blocks", f"{cost.tied_parameters:,}")
  whole.add_row("different while shared", f"{cost.distinct_parameters:,}")
  whole.add_row("steps", f"{cost.train_steps:,}")
  whole.add_row("of these shared", f"{cost.shared_fraction:.1%}")
  whole.add_row("tokens per step", f"{cost.tokens_per_step:,}")
  whole.add_row("tokens", f"{cost.tokens:.3g}")
  whole.add_row("FLOPs per step", f"{cost.flops_per_step:.3g}")
  whole.add_row("FLOPs", f"{cost.flops:.3g}")
  console.print(whole)
  by_phase = rich_table.Table("per step and replica", *cost.phases)
  phases = cost.phases.values()
  for name, field, render in (
    ("steps", "steps", "{:,}".format),
    ("parameters", "parameters", "{:,}".format),
    ("FLOPs, all replicas", "flops_per_step", "{:.3g}".format),
    ("all-reduce", "all_reduce_bytes", messages.size),
    ("weights", "weight_bytes", messages.size),
    ("optimizer slots", "optimizer_bytes", messages.size),
  ):
    by_phase.add_row(name, *(render(getattr(each, field)) for each in phases))
  console.print(by_phase)
  machine = topologies.Machine(
    options.chip, options.chips, options.utilization, options.price
  )
  flops = {"this run": cost.flops} | cost_lib.of_methods(config)
  methods = rich_table.Table(
    *("method", "FLOPs", "of the baseline's", "hours", "dollars"),
    caption=f"Assumed: {machine}.",
  )
  for name, count in flops.items():
    methods.add_row(
      name,
      f"{count:.3g}",
      f"{count / flops['baseline']:.2f}",
      _number(machine.hours(count)),
      _number(machine.dollars(count)),
    )
  console.print(methods)
  if options.output:
    content = dataclasses.asdict(cost) | {"flops_of_methods": flops}
    files.write_json(options.output, content)


def _number(value: float) -> str:
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
