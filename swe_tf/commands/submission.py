"""Writes the zip file that the GLUE site takes.

    swe submission --runs=DIR --output=FILE.zip [--majority_for=WNLI]

Checks all eleven files before it writes. `swe_tf.scoring.submission` has the
layout of the runs directory.
"""

import dataclasses

from swe_tf import files
from swe_tf.commands import options as options_lib
from swe_tf.scoring import submission


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  runs: str = options_lib.flag(
    "Directory with a subdirectory of predictions for each task."
  )
  output: str = options_lib.flag("The zip file to write.")
  majority_for: tuple[str, ...] = options_lib.flag(
    "Fill these with the majority class if they have no predictions; only "
    "WNLI can be.",
    (),
  )


def run(options: Options) -> None:
  """Collects, checks, writes."""
  files.refuse_existing([options.output])
  contents = submission.collect(options.runs, options.majority_for)
  submission.write_zip(options.output, contents)
  for name, content in contents.items():
    print(f"{name}.tsv: {content.count(chr(10)) - 1:,} rows")
  print(f"wrote {options.output}")
