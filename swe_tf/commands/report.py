r"""Writes a verdict, figures and tables of runs.

    swe report --runs=runs/study --output_dir=runs/report
    swe report --runs=runs/study,runs/glue --output_dir=runs/report

Writes a self-contained `report.html`, `report.md`, a CSV file for each table,
and the figures as PNG and SVG. Runs that repeat a row of the paper stand beside
its numbers.
"""

import dataclasses

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.analysis import report as report_lib
from swe_tf.commands import options as opt

# Of the files of a report.
_SUFFIXES = (".html", ".md", ".csv", ".png", ".svg")


@dataclasses.dataclass(frozen=True)
class Options:
  runs: tuple[str, ...] = opt.flag(
    "Directories to search for runs, at any depth."
  )
  output_dir: str = opt.flag(
    "Directory for the report: new, empty, or with an earlier one to replace."
  )
  price: float | None = opt.flag(
    "Dollars per hour of the machine of a run.", None, least=0.0
  )


def run(options: Options) -> None:
  for root in options.runs:
    if not files.as_path(root).is_dir():
      raise errors.UsageError(
        f"--runs={root} is not a directory; name one with runs in it."
      )
  files.check_output_dir(options.output_dir, "output_dir")
  output_dir = files.as_path(options.output_dir)
  earlier = list(output_dir.iterdir()) if output_dir.exists() else []
  has_report = any(path.name == "report.html" for path in earlier)
  for path in earlier:
    if not has_report or path.suffix not in _SUFFIXES:
      raise errors.UsageError(
        f"output_dir {output_dir} has a file that no report wrote ({path.name})"
        "; name a new directory, or one with an earlier report."
      )
  with messages.during("reading the runs and drawing"):
    report = report_lib.make(options.runs, options.price)
    contents = report_lib.to_files(report)
  for path in earlier:
    if path.name not in contents:
      path.unlink()  # What is no longer true is gone.
  for name, content in contents.items():
    files.write_bytes(output_dir / name, content)
  print(report.counts)
  print(report.verdict)
  for line in report.settings:
    print(f"- {line}")
  print(f"{len(contents)} files: {output_dir}")
  messages.say(f"next: python -m webbrowser {output_dir}/report.html")
