"""Lists the configurations that come with the package, or prints one.

    swe experiments
    swe experiments experiments/models/base.yaml

These names work from any directory as `--config_file` and `--gin_file` of
`swe train` and `swe doctor`, and as the study of `swe sweep`.
"""

import dataclasses

from swe_tf import errors
from swe_tf import library
from swe_tf.commands import options as opt


@dataclasses.dataclass(frozen=True)
class Options:
  name: str | None = opt.argument("The configuration to print.", None)


def run(options: Options) -> None:
  known = library.names()
  if options.name is None:
    width = max(map(len, known))
    for name in known:
      first = library.read(name).partition("\n")[0]
      print(f"{name:<{width}}  {first.lstrip('# ')}")
    return
  if options.name not in known:
    hint = errors.nearest(options.name, known, "see `swe experiments`.", 0.3)
    raise errors.UsageError(f"there is no {options.name}; {hint}")
  print(library.read(options.name).rstrip("\n"))
