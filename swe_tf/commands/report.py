r"""Writes a verdict, figures and tables of runs.

    swe report --runs=runs/study --output_dir=runs/report
    swe report --runs=runs/study,runs/glue --output_dir=runs/report
    swe report --runs=runs --site_scores=site.yaml --output_dir=runs/report

Writes a self-contained `report.html`, `report.md`, a CSV file for each table,
and the figures as PNG and SVG. Runs that repeat a row of the paper stand beside
its numbers.
"""

import dataclasses

from swe_tf import errors
from swe_tf import files
from swe_tf.analysis import report as report_lib
from swe_tf.commands import options as opt


@dataclasses.dataclass(frozen=True)
class Options:
  runs: tuple[str, ...] = opt.flag(
    "Directories to search for runs, at any depth."
  )
  output_dir: str = opt.flag(
    "Directory for the report: new, empty, or with an earlier one to replace."
  )
  site_scores: str = opt.flag(
    "YAML file of scores from the GLUE site by run: `runs/a: {QNLI: 93.0}`.", ""
  )


def run(options: Options) -> None:
  for root in options.runs:
    if not files.as_path(root).is_dir():
      raise errors.UsageError(
        f"--runs={root} is not a directory; name one with runs in it."
      )
  report_lib.check_output(options.output_dir)
  report = report_lib.make(options.runs, options.site_scores)
  report_lib.write(options.output_dir, report_lib.to_files(report))
  print(report.counts)
  print(report.verdict)
  for line in report.settings:
    print(f"- {line}")
  print(f"report: {files.as_path(options.output_dir) / 'report.html'}")
