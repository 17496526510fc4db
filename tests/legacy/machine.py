"""What decides the last bits of a float: the processor and TensorFlow."""

import pathlib
import re

# oneDNN chooses its matrix products by these.
_INSTRUCTIONS = re.compile(r"avx|fma|amx")


def describe() -> dict[str, object]:
  """Returns what two machines that round alike have in common."""
  import tensorflow as tf

  cpuinfo = pathlib.Path("/proc/cpuinfo")
  found = re.search(
    r"^flags\s*:(.*)$",
    cpuinfo.read_text() if cpuinfo.exists() else "",
    re.MULTILINE,
  )
  words = found[1].split() if found else []
  return {
    "tensorflow": tf.__version__,
    "instructions": sorted(filter(_INSTRUCTIONS.match, words)),
  }
