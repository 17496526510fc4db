"""Trains a small BERT with and without sharing, and shows what happens.

    swe demo [--output_dir=DIR]

12 layers of width 24 learn the characters of the docstrings installed on this
machine: once shared for the first tenth of the steps and then untied, once
never shared, and beside them 3 layers. DIR/index.html shows the curves and how
the layers diverge. Re-run it after Ctrl-C to resume.
"""

import dataclasses

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt


@dataclasses.dataclass(frozen=True)
class Options:
  output_dir: str = opt.flag("Directory for runs and page.", "runs/demo")
  params_override: str | None = opt.flag(
    "Overrides for both runs, as for swe train. The baseline always has "
    "task.sharing.mode=none; if the model gets it too, there is only one run.",
    None,
  )


def run(options: Options) -> None:
  files.check_output_dir(options.output_dir, "output_dir")
  with messages.during("starting TensorFlow"):
    from swe_tf.studies.demo import session

  session.run(options.output_dir, options.params_override)
