"""Five sentences with masked characters, and what a model fills in.

A loss of 2.2 nats says little to most people; "t[h]e def[a]ult" does.
"""

from collections.abc import Sequence
import dataclasses
import re

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


@dataclasses.dataclass(frozen=True)
class Sentence:
  """A sentence.

  Attributes:
    text: The whole text, nothing masked.
    masked: The indices of the masked characters.
  """

  text: str
  masked: tuple[int, ...]

  @classmethod
  def parse(cls, marked: str) -> "Sentence":
    """Reads a sentence whose masked characters are in brackets.

    >>> Sentence.parse("a[bc]d")
    Sentence(text='abcd', masked=(1, 2))
    """
    text = ""
    masked: list[int] = []
    for inside, outside in re.findall(r"\[(\w+)\]|([^\[\]])", marked):
      masked += range(len(text), len(text) + len(inside))
      text += inside or outside
    return cls(text, tuple(masked))

  def cut(self, length: int) -> "Sentence":
    """Returns its first `length` characters."""
    masked = tuple(place for place in self.masked if place < length)
    return Sentence(self.text[:length], masked)

  @property
  def hidden(self) -> str:
    """The text with an underscore for each masked character."""
    return "".join(
      "_" if place in self.masked else character
      for place, character in enumerate(self.text)
    )

  def marked(self, filled: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the characters, each with `right`, `wrong` or '' if not masked.

    Args:
      filled: What was filled in for the masked characters; a space is shown as
        an open box.
    """
    tokens = dict(zip(self.masked, filled))
    return [
      (tokens[place].replace(" ", "␣"), _kind(tokens[place], character))
      if place in tokens
      else (character, "")
      for place, character in enumerate(self.text)
    ]

  def count_right(self, filled: Sequence[str]) -> int:
    """Returns how many of the masked characters were filled in right."""
    return sum(kind == "right" for _, kind in self.marked(filled))


def _kind(token: str, character: str) -> str:
  return "right" if token == character else "wrong"


def all_sentences(seq_length: int) -> list[Sentence]:
  """Returns the sentences, cut to fit into `seq_length` tokens."""
  return [Sentence.parse(text).cut(seq_length - 2) for text in SENTENCES]


def fill(
  model, vocab_file: files.PathLike, seq_length: int
) -> list[list[str]] | None:
  """Returns what a model predicts for the masked characters of each sentence.

  Runs eagerly and does not change the model.

  Args:
    model: A masked language model of Model Garden.
    vocab_file: Its vocabulary.
    seq_length: The sequence length that it was trained with.

  Returns:
    The most probable token for each; None if the tokens are not characters.
  """
  import numpy as np

  vocabulary = vocab_lib.Vocabulary.load(vocab_file)
  if not vocabulary.is_of_characters:
    return None
  sentences = all_sentences(seq_length)
  inputs = _inputs(sentences, vocabulary, seq_length)
  logits = np.asarray(model(inputs, training=False)["mlm_logits"])
  best = logits.argmax(-1)
  return [
    [vocabulary.tokens[index] for index in row[: len(sentence.masked)]]
    for row, sentence in zip(best, sentences)
  ]


def _inputs(
  sentences: Sequence[Sentence],
  vocabulary: vocab_lib.Vocabulary,
  seq_length: int,
):
  """Returns the sentences as input features of the task."""
  import numpy as np

  cls, sep, mask, unknown = map(
    vocabulary.id_of, ("[CLS]", "[SEP]", "[MASK]", "[UNK]")
  )
  id_of = {token: index for index, token in enumerate(vocabulary.tokens)}
  shape = len(sentences), seq_length
  words = np.full(shape, vocabulary.id_of("[PAD]"), np.int32)
  used = np.zeros(shape, np.int32)
  most = max(len(sentence.masked) for sentence in sentences)
  positions = np.zeros((len(sentences), most), np.int32)
  for row, sentence in enumerate(sentences):
    ids = [id_of.get(character, unknown) for character in sentence.text]
    for slot, place in enumerate(sentence.masked):
      ids[place] = mask
      positions[row, slot] = place + 1  # After [CLS].
    words[row, : len(ids) + 2] = [cls, *ids, sep]
    used[row, : len(ids) + 2] = 1
  return {
    "input_word_ids": words,
    "input_mask": used,
    "input_type_ids": np.zeros(shape, np.int32),
    "masked_lm_positions": positions,
  }
