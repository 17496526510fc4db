"""Writes the zip file to upload to the GLUE site.

    swe submission --runs=runs/column --output=glue.zip

`--runs` is a directory of `swe finetune` with a subdirectory for each task. The
tasks that the paper reports (MNLI, AX, QNLI, QQP and SST-2) must be there. Any
other that is missing is filled with the majority class of its training set
(STS-B: the mean), and the output says so.
"""

import dataclasses

from swe_tf import files
from swe_tf.commands import options as opt
from swe_tf.scoring import glue


@dataclasses.dataclass(frozen=True)
class Options:
  runs: str = opt.flag("Directory with a subdirectory for each task.")
  output: str = opt.flag("The zip file to write.")


def run(options: Options) -> None:
  files.refuse_existing([options.output])
  contents, filled = glue.collect(options.runs)
  glue.write_zip(options.output, contents)
  for name, content in contents.items():
    rows = f"{name}.tsv: {content.count(chr(10)) - 1:,} rows"
    if name in filled:
      rows += f", all of them {glue.FILLED[name]}: no predictions"
    print(rows)
  print(f"wrote {options.output}")
