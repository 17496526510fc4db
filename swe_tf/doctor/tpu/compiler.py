r"""Compiles an HLO module for a TPU, without a TPU; prints JSON.

    python -m swe_tf.doctor.tpu.compiler \
      MODULE TOPOLOGY REPLICAS [OPTION=VALUE ...]

The compiler is the one in libtpu, reached through jax's compile-only client, a
private interface: the versions are pinned in the extra `tpu-check`. Run it in
its own process, which imports no TensorFlow.
"""

import json
import math
import os
import pathlib
import re
import sys
import time
from typing import Any

# Otherwise libtpu would look for the TPU machine that it runs on.
_ENVIRONMENT = {
  "TPU_SKIP_MDS_QUERY": "1",
  "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # There is no TPU to contend for.
  "JAX_PLATFORMS": "cpu",
  "TPU_ACCELERATOR_TYPE": "v5litepod-4",
  "TPU_WORKER_HOSTNAMES": "localhost",
  "TPU_WORKER_ID": "0",
}


def compile_module(hlo: bytes, topology: str, replicas: int, options):
  """Returns the executable of a serialized HLO module."""
  # pylint: disable=g-import-not-at-top
  from jax._src import compiler
  from jax._src.interpreters import mlir
  from jax._src.lib import _jax
  from jax.experimental import topologies
  from jaxlib.mlir import ir
  import numpy as np

  devices = topologies.get_topology_desc(
    topology_name=topology, platform="tpu", **options
  ).devices
  with mlir.make_ir_context():
    module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo))
    # Copies of donated variables, which StableHLO lacks.
    copies = []

    def visit(operation):
      if operation.name == "mhlo.copy":
        operation.results[0].replace_all_uses_with(operation.operands[0])
        copies.append(operation)
      return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for operation in copies:
      operation.erase()
    compile_options = compiler.get_compile_options(
      num_replicas=replicas,
      num_partitions=1,
      device_assignment=np.arange(replicas).reshape(replicas, 1),
    )
    return devices[0].client.compile(
      module, _jax.DeviceList(tuple(devices[:replicas])), compile_options
    )


def all_reduce_bytes(hlo_text: str) -> int:
  """Returns the payload of all all-reduces of a program.

  >>> all_reduce_bytes("%a = (f32[2,3], /*index=1*/ bf16[4]) all-reduce(%b)")
  32
  """
  total = 0
  # Comments hold '=', which would end the search for the shape too early.
  text = re.sub(r"/\*.*?\*/", "", hlo_text)
  for shape in re.findall(r"= (\(?[^=]*?) all-reduce(?:-start)?\(", text):
    # A type is a letter or two and its bits; `pred` takes a byte.
    for bits, dimensions in re.findall(r"[a-z]+(\d*)\w*\[([\d,]*)\]", shape):
      sides = map(int, filter(None, dimensions.split(",")))
      total += math.prod(sides) * int(bits or 8) // 8
  return total


def report(executable) -> dict[str, Any]:
  """Returns the compiler's memory and cost statistics of a program."""
  memory = executable.get_compiled_memory_stats()
  costs = executable.cost_analysis()
  return {
    "arguments": memory.argument_size_in_bytes,
    # Only outputs that do not reuse the memory of an argument.
    "outputs": memory.output_size_in_bytes - memory.alias_size_in_bytes,
    "temporaries": memory.temp_size_in_bytes,
    "code": memory.generated_code_size_in_bytes,
    "flops": costs["flops"],
    "bytes": costs["bytes accessed"],
    "all_reduce": all_reduce_bytes(executable.hlo_modules()[0].to_string()),
  }


def main(argv) -> None:
  path, topology, replicas, *options = argv[1:]
  for name, value in _ENVIRONMENT.items():
    os.environ.setdefault(name, value)
  hlo = pathlib.Path(path).read_bytes()
  start = time.time()
  try:
    named = dict(option.split("=") for option in options)
    executable = compile_module(hlo, topology, int(replicas), named)
    result = report(executable)
  except Exception as error:  # pylint: disable=broad-exception-caught
    # jax's error for a program that is too large has no class of its own.
    if "RESOURCE_EXHAUSTED" not in str(error):
      raise
    result = {"too_large": str(error).splitlines()[0]}
  print(json.dumps(result | {"seconds": round(time.time() - start, 1)}))


if __name__ == "__main__":
  main(sys.argv)
