"""Writes the zip file that the GLUE site takes.

    swe submission --runs=runs/column --output=glue.zip

Checks all eleven files before it writes. The paper reports MNLI, AX, QNLI, QQP
and SST-2, which must be there; CoLA, MRPC, RTE, STS-B and WNLI are filled with
the larger class of their training sets where they are not, and it says so. Any
directory of `swe finetune` with a directory a task will do:
`swe_tf.scoring.submission` has the layout.
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
    "No longer needed: what the paper leaves out is filled.",
    (),
    choices=tuple(submission.FILLED),
  )


def run(options: Options) -> None:
  """Collects, checks, writes."""
  files.refuse_existing([options.output])
  contents, filled = submission.collect(options.runs)
  submission.write_zip(options.output, contents)
  for name, content in contents.items():
    rows = f"{name}.tsv: {content.count(chr(10)) - 1:,} rows"
    if name in filled:
      rows += f", all of them {submission.FILLED[name]}: no predictions"
    print(rows)
  print(f"wrote {options.output}")
