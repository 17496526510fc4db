"""The TPUs that a step can be compiled for. Imports no TensorFlow."""

from collections.abc import Mapping
import math
import re
from typing import NamedTuple

from swe_tf import errors

_GIB = 2**30


class Generation(NamedTuple):
  """A generation of TPUs, by Google's documentation."""

  replicas_per_chip: int  # 2 where TensorFlow sees each core as a device.
  hbm: int  # Bytes per replica; the compiler keeps a little for itself.
  dimensions: int  # Of its topologies.
  options: Mapping[str, str] = {}  # What the compiler needs besides the name.


GENERATIONS = {
  "v2": Generation(2, 8 * _GIB, 2),
  "v3": Generation(2, 16 * _GIB, 2),
  "v4": Generation(1, 32 * _GIB, 3, {"chip_config_name": "megacore"}),
  "v5e": Generation(1, 16 * _GIB, 2),
  "v5p": Generation(1, 95 * _GIB, 3),
  "v6e": Generation(1, 32 * _GIB, 2),
}


class Topology(NamedTuple):
  """A slice; `name` is the compiler's name for it, such as `v5e:2x2`."""

  name: str
  generation: Generation
  replicas: int


def parse(name: str) -> Topology:
  """Returns the named topology, or raises `UsageError`.

  >>> parse("v5e:4x4").replicas
  16
  """
  match = re.fullmatch(r"(v\w+):(\d+(?:x\d+)*)", name)
  generation = GENERATIONS.get(match[1]) if match else None
  sides = [int(side) for side in match[2].split("x")] if match else []
  if generation is None or len(sides) != generation.dimensions:
    raise errors.UsageError(
      f"topology ({name}) is not known; use one such as v2:2x2, v3:2x2, "
      "v4:2x2x1, v4:2x2x4, v5e:2x2, v5e:4x4, v5p:2x2x1 or v6e:2x2."
    )
  replicas = math.prod(sides) * generation.replicas_per_chip
  return Topology(name, generation, replicas)
