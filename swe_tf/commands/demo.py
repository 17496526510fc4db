"""Pre-trains a small BERT on this machine's text, in minutes.

    swe demo [--output_dir=DIR]

12 layers of width 64 learn the characters of the docstrings that are installed
here, shared for the first tenth of the steps, then untied. Re-run it after
Ctrl-C to resume.
"""

import dataclasses

from swe_tf.commands import options as options_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  output_dir: str = options_lib.flag(
    "Directory for the corpus and the run.", "runs/demo"
  )
  params_override: str | None = options_lib.flag(
    "Overrides, as for swe train: task.sharing.mode=none, ...", None
  )


def run(options: Options) -> None:
  """Runs the demo."""
  from swe_tf import demo

  demo.run(options.output_dir, options.params_override)
