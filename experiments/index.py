"""Updates what is computed about the rows: their cost, and their index.

    python -m experiments.index

writes the cost into the header of every row (`table*/*.yaml`) and the table
into `README.md`. Title, accuracy and command of a row are written by hand.
"""

import dataclasses
import glob
import os
import re
import shlex

from official.core import config_definitions as cfg
from official.core import train_utils
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import cost as cost_lib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "experiments", "README.md")
_MARKER = "<!-- What follows is written by python -m experiments.index -->\n"


@dataclasses.dataclass(frozen=True)
class Row:
  """The header of a row's file.

  Attributes:
    path: The file, relative to the root of the repository.
    title: The table and the row of the paper.
    facts: Name to value: the expected accuracy and the cost.
    command: The words of the command that runs it.
  """

  path: str
  title: str
  facts: dict[str, str]
  command: list[str]

  def flags(self, name: str) -> list[str]:
    """Returns the values of a flag of the command, in their order."""
    prefix = f"--{name}="
    return [
      word.removeprefix(prefix)
      for word in self.command
      if word.startswith(prefix)
    ]


def read_rows() -> list[Row]:
  """Reads the headers of all rows."""
  paths = glob.glob("experiments/table*/*.yaml", root_dir=ROOT)
  return sorted(map(read_row, paths), key=lambda row: row.title)


def read_row(path: str) -> Row:
  """Reads a header: a title, `name  value` lines, and a command."""
  header = re.match(r"(#.*\n)+", _read(os.path.join(ROOT, path)))[0]
  lines = re.sub(r"^# ?", "", header, flags=re.MULTILINE)
  title, facts, _, command = lines.strip().split("\n\n")
  return Row(
    path=path,
    title=title,
    facts=dict(re.findall(r"^ *(.+?) {2,}(.+)$", facts, re.MULTILINE)),
    command=shlex.split(command),
  )


def load_config(row: Row, params_override: str = "") -> cfg.ExperimentConfig:
  """Returns the config of a row's command, as the driver parses it.

  Args:
    row: The row.
    params_override: Overrides to apply after those of the command, as for the
      driver.
  """
  overrides = [*row.flags("params_override"), params_override]
  return train_utils.parse_configuration(
    train_utils.ParseConfigOptions(
      experiment=row.flags("experiment")[0],
      config_file=[
        os.path.join(ROOT, path) for path in row.flags("config_file")
      ],
      tpu=row.flags("tpu")[0],
      params_override=",".join(filter(None, overrides)),
    ),
    print_return=False,
  )


def cost(config: cfg.ExperimentConfig) -> dict[str, str]:
  """Returns what a run costs, formatted for a header."""
  found = cost_lib.estimate(config)
  return {
    "steps": f"{found.train_steps:,}, of these {found.shared_steps:,} shared",
    "tokens": f"{found.tokens:.2e}",
    "parameters": f"{found.parameters:,}",
    "FLOPs": f"{found.flops:.2e}",
  }


def with_cost(text: str, values: dict[str, str]) -> str:
  """Returns the text of a row's file with these values in its header."""
  for name, value in values.items():
    text, found = re.subn(
      rf"^(#   {name}  +).*$",
      rf"\g<1>{value}",
      text,
      count=1,
      flags=re.MULTILINE,
    )
    if not found:
      raise ValueError(f"The header has no line {name!r}:\n{text}")
  return text


def with_index(text: str, rows: list[Row]) -> str:
  """Returns the text of the README with the table of these rows."""
  facts = list(rows[0].facts)
  head = ["row", "the paper's", *facts, "after"]
  lines = [" | ".join(head), " | ".join(["---"] * len(head))]
  for row in rows:
    name = os.path.relpath(row.path, "experiments")
    others = (
      os.path.relpath(path, "experiments").removesuffix(".yaml")
      for path in row.flags("config_file")[:-1]
    )
    lines.append(
      " | ".join(
        [
          f"[{name.removesuffix('.yaml')}]({name})",
          row.title,
          *row.facts.values(),
          ", ".join(others),
        ]
      )
    )
  table = "".join(f"| {line} |\n" for line in lines)
  return text[: text.index(_MARKER)] + _MARKER + "\n" + table


def _read(path: str) -> str:
  with open(path, encoding="utf-8") as file:
    return file.read()


def _write(path: str, text: str) -> None:
  with open(path, "w", encoding="utf-8") as file:
    file.write(text)


def main() -> None:
  """Writes all costs, then the index."""
  for row in read_rows():
    path = os.path.join(ROOT, row.path)
    _write(path, with_cost(_read(path), cost(load_config(row))))
  _write(README, with_index(_read(README), read_rows()))


if __name__ == "__main__":
  main()
