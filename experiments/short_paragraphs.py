"""Extracts the part of a SQuAD file that a model of characters can read.

    python -m experiments.short_paragraphs dev-v1.1.json dev.json

Keeps the paragraphs of fewer than 300 characters, with their questions.
"""

import json
import sys

_LENGTH = 300


def main(source: str, target: str) -> None:
  """Writes the short paragraphs of `source` to `target`."""
  with open(source, encoding="utf-8") as file:
    squad = json.load(file)
  for article in squad["data"]:
    article["paragraphs"] = [
      paragraph
      for paragraph in article["paragraphs"]
      if len(paragraph["context"]) < _LENGTH
    ]
  with open(target, "w", encoding="utf-8") as file:
    json.dump(squad, file)


if __name__ == "__main__":
  main(*sys.argv[1:])
