"""What the demo looks at in a model: masked sentences.

A loss of 2.2 nats says little to most people; "t[h]e def[a]ult" does. Imports
no TensorFlow.
"""

from collections.abc import Sequence
import re
from typing import NamedTuple

import numpy as np

from swe_tf import files
from swe_tf.data.text import vocab as vocab_lib

# The masked characters are in brackets. Short enough for 32 tokens.
SENTENCES = (
  "ret[u]rns t[h]e n[um]ber of ele[m]ents",
  "if tr[u]e, a [c]opy [i]s re[tu]rned.",
  "t[h]e def[a]ult va[lu]e i[s] none.",
  "th[i]s func[ti]on is d[e]precat[e]d.",
  "a[n] arr[a]y wi[th] the s[a]me shape.",
)


class Sentence(NamedTuple):
  """A text, and the indices of its masked characters."""

  text: str
  masked: tuple[int, ...]

  def marked(self, filled: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the characters, each with `right`, `wrong`, or '' if shown.

    A space that was filled in is shown as an open box.
    """
    shown = [(character, "") for character in self.text]
    for place, token in zip(self.masked, filled):
      kind = "right" if token == self.text[place] else "wrong"
      shown[place] = token.replace(" ", "␣"), kind
    return shown


def all_sentences(seq_length: int) -> list[Sentence]:
  """Returns the sentences, cut to fit into `seq_length` tokens.

  >>> all_sentences(8)[0]
  Sentence(text='return', masked=(3,))
  """
  found = []
  for sentence in SENTENCES:
    text, masked, length = "", list[int](), seq_length - 2  # [CLS] and [SEP].
    for inside, outside in re.findall(r"\[(\w+)\]|([^\[\]])", sentence):
      masked += range(len(text), len(text) + len(inside))
      text += inside or outside
    found.append(
      Sentence(text[:length], tuple(i for i in masked if i < length))
    )
  return found


def fill(
  model, vocab_file: files.PathLike, seq_length: int
) -> list[list[str]] | None:
  """Returns the most probable token for each masked character, by sentence.

  Runs eagerly and does not change the model, a masked language model of Model
  Garden. None if its tokens are not characters.
  """
  vocabulary = vocab_lib.Vocabulary.load(vocab_file)
  if not vocabulary.is_of_characters:
    return None
  sentences = all_sentences(seq_length)
  cls, sep, mask, unknown, pad = map(
    vocabulary.id_of, ("[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]")
  )
  id_of = {token: index for index, token in enumerate(vocabulary.tokens)}
  shape = len(sentences), seq_length
  words = np.full(shape, pad, np.int32)
  most = max(len(sentence.masked) for sentence in sentences)
  positions = np.zeros((len(sentences), most), np.int32)
  for row, sentence in enumerate(sentences):
    ids = [id_of.get(character, unknown) for character in sentence.text]
    for slot, place in enumerate(sentence.masked):
      ids[place] = mask
      positions[row, slot] = place + 1  # After [CLS].
    words[row, : len(ids) + 2] = [cls, *ids, sep]
  inputs = {
    "input_word_ids": words,
    "input_mask": (words != pad).astype(np.int32),
    "input_type_ids": np.zeros(shape, np.int32),
    "masked_lm_positions": positions,
  }
  logits = np.asarray(model(inputs, training=False)["mlm_logits"])
  return [
    [vocabulary.tokens[index] for index in row[: len(sentence.masked)]]
    for row, sentence in zip(logits.argmax(-1), sentences)
  ]
