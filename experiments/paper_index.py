"""The index of the paper's tables and figures: file, command, small run.

    python -m experiments.paper_index

writes docs/results/README.md from experiments/paper.yaml. A test fails if a
table or a figure of the paper is missing, or if the index names something that
does not exist.
"""

import pathlib

from swe_tf import yaml_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
INDEX = ROOT / "experiments" / "paper.yaml"
PAGE = ROOT / "docs" / "results" / "README.md"

_HEAD = """# The paper's tables and figures here

Written by `python -m experiments.paper_index` from
[experiments/paper.yaml](../../experiments/paper.yaml). The files of the paper's
size have not been run with this code; the small ones have, with the text of
`python -m experiments.hold_out` as data. They show that a comparison runs, with
one seed and one peak; which method pays, and when, is in
[docs/map.md](../map.md).

| paper | what | full size | small | result |
|---|---|---|---|---|
"""


def read() -> dict[str, dict]:
  """Returns the index by table and figure."""
  return yaml_files.read(INDEX)


def page() -> str:
  """Returns the page."""
  lines = []
  for name, entry in read().items():
    full = ", ".join(
      f"[{pathlib.Path(path).name}](../../{path})" for path in entry["full"]
    )
    result = pathlib.Path(entry["result"]).relative_to("docs")
    shown = f"[{result.name}](../{result})"
    lines.append(
      f"| {name} | {entry['what']} | {full} | `{entry['small']}` | {shown} |\n"
    )
  return _HEAD + "".join(lines)


if __name__ == "__main__":
  PAGE.write_text(page(), encoding="utf-8")
