"""Where a run trains: the TPU, the GPUs or the CPU of its config, the workers.

A config that names no device takes the TPU of the machine that it runs on, if
there is one: on a TPU VM nobody wants to train on its CPU. The cluster that
`TF_CONFIG` describes is checked before anything connects.
"""

from collections.abc import Sequence
import glob
from importlib import util
import os

import tensorflow as tf

from official.common import distribute_utils
from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import messages

# A larger model on a CPU is hardly meant.
_WEIGHTS_ON_A_CPU = 10_000_000


def has_local_tpu() -> bool:
  """Returns whether this machine has a TPU, and the library that drives it."""
  found = glob.glob("/dev/accel[0-9]*") or glob.glob("/dev/vfio/[0-9]*")
  return bool(found) and util.find_spec("libtpu") is not None


def resolve(runtime: cfg.RuntimeConfig) -> tuple[str, str | None]:
  """Returns the kind of strategy, and the TPU's address if it is one.

  The address is `runtime.tpu`, the environment's `TPU_NAME`, or `local`.
  """
  kind, name = runtime.distribution_strategy, os.environ.get("TPU_NAME")
  is_unset = kind == "mirrored" and not runtime.num_gpus
  if is_unset and (runtime.tpu or name or has_local_tpu()):
    kind = "tpu"
  if kind != "tpu":
    return kind, None
  address = runtime.tpu or name or ("local" if has_local_tpu() else None)
  if address is None:
    raise errors.UsageError(
      "runtime.distribution_strategy is 'tpu', but this machine has none, or "
      "no libtpu; set runtime.tpu or TPU_NAME to the name of one."
    )
  return kind, address


def num_workers(runtime: cfg.RuntimeConfig) -> int:
  """Returns the number of workers; raises `UsageError` for a wrong cluster."""
  if runtime.worker_hosts:
    return len(runtime.worker_hosts.split(","))
  text = os.environ.get("TF_CONFIG", "").strip()
  if not text:
    os.environ.pop("TF_CONFIG", None)  # TensorFlow would parse "" as JSON.
  kind = runtime.distribution_strategy
  if not text or kind == "tpu":  # A TPU's hosts find each other.
    return 1
  try:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    jobs = resolver.cluster_spec().as_dict()
    if not jobs.keys() <= {"chief", "worker"}:
      raise ValueError(f"the jobs are {', '.join(jobs)}")
    if jobs:  # Raises unless this worker is one of them.
      resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id)
  except (LookupError, TypeError, ValueError) as error:
    raise errors.UsageError(
      f"TF_CONFIG ({text}) is not a worker and its cluster of chief and worker "
      f"hosts ({errors.first_line(error)}); docs/tpu.md has an example."
    ) from error
  count = sum(map(len, jobs.values())) or 1
  if count > 1 and kind != "multi_worker_mirrored":
    raise errors.UsageError(
      f"TF_CONFIG has {count} workers, but runtime.distribution_strategy is "
      f"{kind!r}, so each would train alone; set it to "
      "'multi_worker_mirrored', or unset TF_CONFIG."
    )
  return count


def is_chief() -> bool:
  """Whether this process saves; `TF_CONFIG` was checked."""
  resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
  has_chief = "chief" in resolver.cluster_spec().as_dict()
  first = "chief" if has_chief else "worker"
  task = resolver.task_type or first, resolver.task_id or 0
  return task == (first, 0)


def make_strategy(runtime: cfg.RuntimeConfig) -> tf.distribute.Strategy:
  """Connects to the devices of a config."""
  kind, address = resolve(runtime)
  return distribute_utils.get_distribution_strategy(
    distribution_strategy=kind,
    all_reduce_alg=runtime.all_reduce_alg,
    num_gpus=runtime.num_gpus,
    tpu_address=address,
    **runtime.model_parallelism(),
  )


def describe(
  strategy: tf.distribute.Strategy, weights: Sequence[tf.Variable]
) -> str:
  """Returns what a run trains on; warns if a large model is on a CPU."""
  try:
    places = strategy.extended.worker_devices
  except RuntimeError:  # No strategy: TensorFlow takes a GPU if there is one.
    found = (tf.config.list_logical_devices(k) for k in ("GPU", "CPU"))
    places = [next(each[0].name for each in found if each)]
  devices = [place.rpartition("device:")[2] for place in places]
  size = sum(weight.shape.num_elements() for weight in weights)
  if size > _WEIGHTS_ON_A_CPU and all("CPU" in device for device in devices):
    messages.warn(
      f"{size // 10**6} million weights train on a CPU; set runtime.num_gpus, "
      "or runtime.distribution_strategy=tpu and runtime.tpu."
    )
  return f"training on {', '.join(devices)}"
