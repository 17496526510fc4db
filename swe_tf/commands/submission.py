"""The `swe submission` command: the zip file that the GLUE site takes.

    swe submission --runs=DIR --output=FILE.zip [--majority_for=WNLI]

Checks all eleven files before it writes. `submission` has the layout of the
runs directory.
"""

from collections.abc import Sequence

from absl import app
from absl import flags

from swe_tf import files
from swe_tf.scoring import submission

_RUNS = flags.DEFINE_string(
  "runs", None, "Directory with a subdirectory of predictions for each task."
)
_OUTPUT = flags.DEFINE_string("output", None, "The zip file to write.")
_MAJORITY_FOR = flags.DEFINE_list(
  "majority_for",
  [],
  "Fill these with the majority class if they have no "
  "predictions; only WNLI can be.",
)


@files.one_line_errors("swe submission")
def main(argv: Sequence[str]) -> None:
  """Collects, checks, writes."""
  files.refuse_arguments(argv[1:])
  files.require(runs=_RUNS.value, output=_OUTPUT.value)
  files.refuse_existing([_OUTPUT.value])
  contents = submission.collect(_RUNS.value, _MAJORITY_FOR.value)
  submission.write_zip(_OUTPUT.value, contents)
  for name, content in contents.items():
    print(f"{name}.tsv: {content.count(chr(10)) - 1:,} rows")
  print(f"wrote {_OUTPUT.value}")


if __name__ == "__main__":
  app.run(main)
