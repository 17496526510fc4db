r"""Checks a `swe train` command line before you run it.

    swe doctor --experiment=swe/bert_pretraining --model_dir=DIR \
      --config_file=FILE --params_override=...

Prints what the run would do, and everything that would keep it from starting or
from doing what you meant. Nothing is trained or written. The exit status is 2
if a fault is in the configuration, and 1 if all faults are elsewhere. See also
`swe doctor cost`, `swe doctor tpu`.
"""

import dataclasses
import itertools

from rich import console as rich_console
from rich import markup

from swe_tf import errors
from swe_tf.commands import stock_options

_COLORS = {"ok": "green", "warn": "yellow", "fault": "red"}


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The flags of `swe train`."""


def run(options: Options) -> None:
  with errors.keep() as faults:
    config = stock_options.read_config(options, must_share=False)
  from swe_tf.doctor import checks

  console = rich_console.Console(soft_wrap=True, highlight=False)
  wrong = dict.fromkeys(map(str, faults))
  lines = [("config", "fault", text) for text in wrong]
  names = []
  found = checks.run(config, options.model_dir, faults=faults)
  for name, verdict, text in itertools.chain(lines, found):
    if verdict == "fault":
      names.append(name)
    color = _COLORS[verdict]
    console.print(f"[{color}]{verdict:<5}[/] {name:<10}", markup.escape(text))
  if names == ["config"]:
    raise errors.UsageError(*wrong)
  if names:
    raise (errors.UsageError if faults else errors.Failed)(
      "the run cannot start; see the faults above: "
      f"{', '.join(dict.fromkeys(names))}."
    )
