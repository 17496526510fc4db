r"""Writes a verdict, figures and tables of runs.

    swe report --runs=runs/study --output_dir=runs/report
    swe report --runs=runs/study,runs/glue --output_dir=runs/report
    swe report --runs=runs --site_scores=site.yaml --output_dir=runs/report

Writes a self-contained `report.html`, `report.md`, a CSV file for each table,
and the figures as PNG and SVG. Runs that repeat a row of the paper stand beside
its numbers.
"""

import dataclasses

from absl import logging

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import report as report_lib
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
  for root in options.runs:
    if not files.as_path(root).is_dir():
      raise errors.UsageError(
        f"--runs={root} is not a directory; name one with runs in it."
      )
  report_lib.check_output(options.output_dir)
  logging.set_verbosity(logging.ERROR)  # TensorBoard logs every file.
  report = report_lib.make(options.runs, options.site_scores)
  report_lib.write(options.output_dir, report_lib.to_files(report))
  print(report.counts)
  print(report.verdict)
  for line in report.settings:
    print(f"- {line}")
  print(f"report: {files.as_path(options.output_dir) / 'report.html'}")
