r"""Checks a `swe train` command line before you run it.

    swe doctor --experiment=swe/bert_pretraining --model_dir=DIR \
      --config_file=FILE --params_override=...

Prints what the run would do, and everything that would keep it from starting or
from doing what you meant. Nothing is trained or written. The exit status is 1
if there is a fault, and 2 if there is no experiment to check. See also `swe
doctor cost`, `swe doctor tpu`.
"""

import dataclasses

from rich import console as rich_console
from rich import markup

from swe_tf import errors
from swe_tf.commands import stock_options

_COLORS = {"ok": "green", "warn": "yellow", "fault": "red"}


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The flags of `swe train`."""


def run(options: Options) -> None:
  config = stock_options.read_config(options, must_share=False)
  from swe_tf.doctor import checks

  console = rich_console.Console(soft_wrap=True, highlight=False)
  faults = []
  for name, verdict, text in checks.run(config, options.model_dir):
    if verdict == "fault":
      faults.append(name)
    color = _COLORS[verdict]
    console.print(f"[{color}]{verdict:<5}[/] {name:<10}", markup.escape(text))
  if faults:
    raise errors.Failed(
      f"the run cannot start; see the faults above: {', '.join(faults)}."
    )
