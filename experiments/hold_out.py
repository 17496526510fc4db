"""Holds out the last twentieth of a text's documents for validation.

    python -m experiments.hold_out TEXT TRAIN HELD_OUT

Documents are separated by blank lines, as `swe prepare pretraining` reads them.
"""

import sys

_KEPT = 0.95


def main(source: str, train: str, held_out: str) -> None:
  """Writes the documents of `source` to `train` and `held_out`."""
  with open(source, encoding="utf-8") as file:
    documents = file.read().split("\n\n")
  cut = int(_KEPT * len(documents))
  for path, part in ((train, documents[:cut]), (held_out, documents[cut:])):
    with open(path, "x", encoding="utf-8") as file:
      file.write("\n\n".join(part))


if __name__ == "__main__":
  main(*sys.argv[1:])
