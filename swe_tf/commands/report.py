r"""Writes a verdict, tables and figures of runs, beside the paper's.

    swe report --runs=runs/study --output_dir=runs/report
    swe report --runs=runs/study,runs/glue --output_dir=runs/report
    swe report --runs=runs --site_scores=site.yaml --output_dir=runs/report

Writes a self-contained `report.html`, `report.md`, a CSV file for each table,
and the figures as PNG and SVG. A cell that no run fills stays empty.
"""

import dataclasses

from absl import logging

from swe_tf import files
from swe_tf.analysis import build
from swe_tf.analysis import output
from swe_tf.commands import options as options_lib


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  runs: tuple[str, ...] = options_lib.flag(
    "Directories to search, at any depth, for runs of swe sweep, swe train and "
    "swe finetune."
  )
  output_dir: str = options_lib.flag(
    "Directory for the report. It must be new or empty, or hold an earlier "
    "report, which is replaced."
  )
  site_scores: str = options_lib.flag(
    "A YAML file of scores from the GLUE site, under the name of a run or a "
    "column: `runs/swe: {QNLI: 93.0, SST-2: 94.7}`.",
    "",
  )


def run(options: Options) -> None:
  """Writes the report."""
  output.check(options.output_dir)
  logging.set_verbosity(logging.ERROR)  # TensorBoard logs every file.
  sections, opening = build.make_sections(options.runs, options.site_scores)
  output.write(options.output_dir, build.make_files(sections, opening))
  print(opening.runs)
  print(opening.verdict)
  for line in opening.settings:
    print(f"- {line}")
  print(f"report: {files.as_path(options.output_dir) / 'report.html'}")
