"""A small vocabulary, text of its words, and shards, for tests."""

import os

import numpy as np
from rich import console as rich_console

from official.nlp.data import pretrain_dataloader
from swe_tf.data.prepare import job
from swe_tf.data.text import vocab as vocab_lib

_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su")


def tokens() -> list[str]:
  """Returns a WordPiece vocabulary: words, and pieces that continue words."""
  words = [a + b for a in _SYLLABLES for b in _SYLLABLES]
  pieces = ["##" + syllable for syllable in _SYLLABLES]
  return [*vocab_lib.SPECIAL_TOKENS, "[unused0]", *".,!?", *words, *pieces]


def sentences(count: int, seed: int = 0) -> list[str]:
  """Returns random sentences; a third of the words have up to six pieces."""
  rng = np.random.default_rng(seed)

  def word():
    return "".join(
      rng.choice(_SYLLABLES, rng.choice([2, 2, rng.integers(2, 8)]))
    )

  return [
    " ".join(word() for _ in range(rng.integers(2, 14)))
    + rng.choice(list(".!?"))
    for _ in range(count)
  ]


def text(count: int, seed: int = 0) -> str:
  """Returns documents of one sentence to seven, blank lines between them."""
  rng = np.random.default_rng(seed)
  lines = []
  for sentence in sentences(count, seed):
    lines.append(sentence)
    if rng.random() < 0.25:
      lines.append("")
  return "\n".join(lines) + "\n"


def write(folder: str, **texts: str) -> str:
  """Writes `vocab.txt` and text files to a folder; returns the vocabulary."""
  vocab = os.path.join(folder, "vocab.txt")
  with open(vocab, "w") as f:
    f.write("".join(f"{token}\n" for token in tokens()))
  for name, content in texts.items():
    with open(os.path.join(folder, f"{name}.txt"), "w") as f:
      f.write(content)
  return vocab


def prepare(**options) -> dict:
  """Runs `swe prepare pretraining`; returns the manifest."""
  return job.prepare(job.Options(**options), rich_console.Console(quiet=True))


def shards_config(**fields) -> pretrain_dataloader.BertPretrainDataConfig:
  """Returns a config that reads masked shards, which have no pairs."""
  return pretrain_dataloader.BertPretrainDataConfig(
    **{"use_next_sentence_label": False, **fields}
  )
