"""What several slices would need, by the cost model: nothing is compiled."""

from official.core import config_definitions as cfg
from swe_tf.configs import cost as cost_lib
from swe_tf.doctor import units_of_measure as show
from swe_tf.doctor.tpu import topologies


def advice(
  config: cfg.ExperimentConfig, topology: topologies.Topology
) -> list[str]:
  """Returns a line for each number of slices that saves micro-batches.

  With twice as many slices a replica has half the sequences, so half as many
  micro-batches have the size that fits.

  Args:
    config: The experiment, with the micro-batches that fit one slice.
    topology: The slice.
  """
  count = config.task.micro_batches
  numbers = [n for n in range(2, count + 1) if count % n == 0]
  if not numbers:
    return []
  phases = cost_lib.estimate(config).phases
  payloads = ", ".join(
    f"{show.size(phase.all_reduce_bytes)} {name}"
    for name, phase in phases.items()
  )
  return [
    "several slices, by the cost model only (nothing was compiled for them); "
    f"each step all-reduces between slices: {payloads}",
    *(
      f"  {n} slices of {topology.name}: task.micro_batches={count // n}"
      for n in numbers
    ),
  ]
