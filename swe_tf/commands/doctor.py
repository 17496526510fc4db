r"""Checks a `swe train` command line before you run it.

    swe doctor --experiment=swe/bert_pretraining --model_dir=DIR \
      --config_file=FILE --params_override=...

Prints what the run would do, from the installed versions and one record of each
shard to the free disk space. Reports everything that would keep it from
starting or from doing what you meant. Nothing is trained or written. The exit
status is 1 if there is a fault, and 2 if there is no experiment to check. See
also `swe doctor cost`, `swe doctor tpu`.
"""

import dataclasses
from typing import Any

from absl import logging
from rich import console as rich_console
from rich import markup

from swe_tf import errors
from swe_tf.commands import early
from swe_tf.commands import stock_options

_COLORS = {"ok": "green", "warn": "yellow", "fault": "red"}


@dataclasses.dataclass(frozen=True)
class Options(stock_options.StockOptions):
  """The flags of `swe train`."""


def read_config(options: Any, must_share: bool = True) -> Any:
  """Returns the validated experiment of the flags; no data is read.

  Args:
    options: Has the flags of `swe train` as attributes.
    must_share: Whether only experiments that share weights are accepted;
      otherwise all of this package are.
  """
  from swe_tf import registry  # noqa: F401 (registers)
  from swe_tf.configs import experiment
  from swe_tf.configs import parsing

  logging.set_verbosity(logging.ERROR)  # The commands print what matters.
  parsing.parse_gin(options)
  config = parsing.parse_configuration(options, lock_return=False)
  if not must_share and isinstance(config, experiment.CheckedExperimentConfig):
    return config
  if not isinstance(config, experiment.SharingExperimentConfig):
    raise errors.UsageError(
      f"--experiment={options.experiment} does not share weights; use "
      "swe/bert_pretraining or swe/bert_pretraining_text."
    )
  return config


def run(options: Options) -> None:
  """Runs all checks and prints a line for each."""
  early.check_plan(options)
  # TensorFlow takes seconds to import.
  from swe_tf.doctor import checks

  config = read_config(options, must_share=False)
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
