r"""The `swe doctor cost` command: what a run costs, before it is run.

    swe doctor cost --experiment=swe/bert_pretraining \
      --config_file=experiments/models/base.yaml

The flags are those of `swe train`. No data is read and nothing is trained.
"""

from collections.abc import Sequence
import dataclasses
import json

from absl import flags
from rich import console as rich_console
from rich import table as rich_table

from swe_tf import errors
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import experiment
from swe_tf.doctor import units_of_measure as show


def define_flags() -> None:
  """Defines the flags of the command."""
  experiment.define_flags()
  flags.DEFINE_string("output", "", "A JSON file for the figures.")


def _tables(cost: cost_lib.Cost) -> list[rich_table.Table]:
  run = rich_table.Table("the run", "", title=f"units {cost.units}")
  for name, value in (
    ("parameters", f"{cost.parameters:,}"),
    ("of these in blocks", f"{cost.tied_parameters:,}"),
    ("different while shared", f"{cost.distinct_parameters:,}"),
    ("steps", f"{cost.train_steps:,}"),
    ("of these shared", f"{cost.shared_fraction:.1%}"),
    ("tokens a step", f"{cost.tokens_per_step:,}"),
    ("tokens", f"{cost.train_steps * cost.tokens_per_step:.3g}"),
    ("FLOPs a step", f"{cost.flops_per_step:.3g}"),
    ("FLOPs", f"{cost.train_steps * cost.flops_per_step:.3g}"),
  ):
    run.add_row(name, value)
  phases = rich_table.Table("a step, each replica", *cost.phases)
  for name, field in (
    ("steps", "steps"),
    ("all-reduce", "all_reduce_bytes"),
    ("weights", "weight_bytes"),
    ("optimizer slots", "optimizer_bytes"),
  ):
    values = [getattr(phase, field) for phase in cost.phases.values()]
    phases.add_row(
      name,
      *(
        f"{value:,}" if field == "steps" else show.size(value)
        for value in values
      ),
    )
  return [run, phases]


def main(argv: Sequence[str]) -> None:
  """Prints the cost of the experiment that the flags name."""
  if len(argv) > 1:
    raise errors.UsageError(f"swe doctor cost takes flags, got {argv[1]!r}.")
  cost = cost_lib.estimate(experiment.read_config())
  console = rich_console.Console()
  for table in _tables(cost):
    console.print(table)
  if flags.FLAGS.output:
    with open(flags.FLAGS.output, "w", encoding="utf-8") as file:
      json.dump(dataclasses.asdict(cost), file, indent=2)
