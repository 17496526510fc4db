"""Packs lines of text into sequences of token ids, inside a TensorFlow graph.

Documents follow each other in a sequence, with [SEP] between them, and each
sequence holds whole sentences: [CLS] sentence sentence [SEP] sentence [SEP].
A sentence is cut, between two words, only if it is longer than a whole
sequence. `masking` chooses what to predict in a sequence.
"""

import dataclasses

import tensorflow as tf

from swe_tf import errors
from swe_tf.data.text import tokenizers

# WikiText marks titles as "= Title =" and sections as "= = Section = =".
_HEADING = r"(= )+[^=]+( =)+"
_TITLE = r"= [^=]+ ="

# Lines to pack in one call. The last sequence of a call is padded, so half a
# sequence is lost per thousand lines; more lines would not fit the processor's
# cache.
LINES_PER_CHUNK = 1024

# Three special tokens, and something between them.
_MIN_SEQ_LENGTH = 8


def split_documents(lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Drops blank lines and finds where documents start.

  A document starts after a blank line and at a WikiText title. The blank lines
  around WikiText's headings are layout and do not end a document.

  Returns:
    The lines that are not blank, stripped, and for each whether a document
    starts there. For the first line, which needs no [SEP], this means nothing.
  """
  lines = tf.strings.strip(lines)
  blank = tf.equal(lines, "")
  after_blank = tf.concat([[False], blank], 0)[:-1]
  # Runs of blank lines count as one, so only the line before matters.
  lines, after_blank = lines[~blank], after_blank[~blank]
  heading = tf.strings.regex_full_match(lines, _HEADING)
  title = tf.strings.regex_full_match(lines, _TITLE)
  after_heading = tf.concat([[True], heading], 0)[:-1]
  return lines, title | (after_blank & ~heading & ~after_heading)


@dataclasses.dataclass(frozen=True)
class Packer:
  """Packs text lines into sequences of `seq_length` ids.

  Attributes:
    tokenizer: The tokenizer of the lines.
    seq_length: The length of a sequence, with its special tokens and padding.
  """

  tokenizer: tokenizers.Tokenizer
  seq_length: int

  def __post_init__(self):
    if self.seq_length < _MIN_SEQ_LENGTH:
      raise errors.UsageError(
        f"`seq_length` ({self.seq_length}) must be at least {_MIN_SEQ_LENGTH}."
      )

  def pack(self, lines: tf.Tensor) -> tf.Tensor:
    """Packs lines into sequences, with [SEP] between documents.

    Args:
      lines: A vector of strings. The last sequence is padded, so many lines
        in one call waste less.

    Returns:
      `int32[sequences, seq_length]`, which depends on the lines alone.
    """
    id_of = self.tokenizer.vocabulary.id_of
    cls, sep, pad = map(id_of, ("[CLS]", "[SEP]", "[PAD]"))
    units, starts_document = self._units(lines, room=self.seq_length - 2)
    lengths = units.row_lengths()
    starts_sequence = _cut(lengths, starts_document, self.seq_length - 2)
    separated = starts_document & ~starts_sequence

    # Where a unit's first id goes in the flat array of all sequences.
    sequence = tf.cumsum(tf.cast(starts_sequence, tf.int32)) - 1
    count = tf.math.count_nonzero(starts_sequence, dtype=tf.int32)
    rows = tf.range(count) * self.seq_length
    begins = tf.cumsum(lengths + tf.cast(separated, tf.int32)) - lengths
    begins += tf.gather(rows + 1 - begins[starts_sequence], sequence)
    ends = tf.math.segment_max(begins + lengths, sequence)
    shifts = tf.repeat(begins - units.row_starts(), lengths)

    flat = tf.fill([count * self.seq_length], pad)
    for index, token in (
      (shifts + tf.range(tf.size(shifts)), units.values),
      (rows, cls),
      (ends, sep),
      (begins[separated] - 1, sep),
    ):
      token = tf.broadcast_to(token, tf.shape(index))
      flat = tf.tensor_scatter_nd_update(flat, index[:, tf.newaxis], token)
    return tf.reshape(flat, [count, self.seq_length])

  def _units(self, lines, room):
    """Returns the units that packing keeps whole: at most `room` ids each.

    Longer ones are split into words, and words that are still too long into
    pieces.

    Returns:
      The ids `[units, (ids)]`, and for each unit whether it starts a document.
    """
    lines, starts_document = split_documents(lines)
    tokens = self.tokenizer.tokenize_units(lines)
    tokens = tokens.with_row_splits_dtype(tf.int32)
    units = tokens.values
    line_starts = tf.gather(units.row_splits, tokens.row_starts())
    document_starts = line_starts[starts_document]
    starts = units.row_starts()[units.row_lengths() > 0]
    starts = self._split_long(starts, units.values, room)
    opens = tf.scatter_nd(
      tf.searchsorted(starts, document_starts)[:, tf.newaxis],
      tf.ones_like(document_starts),
      [tf.size(starts) + 1],
    )
    units = tf.RaggedTensor.from_row_starts(
      units.values, starts, validate=False
    )
    return units, opens[:-1] > 0

  def _split_long(self, starts, ids, room):
    """Adds the starts of words in units longer than `room`.

    In words that are still too long, every id becomes a start.
    """

    def add(starts, keep):
      lengths = tf.concat([starts[1:], [tf.size(ids)]], 0) - starts
      is_long = lengths > room
      begins, sizes = starts[is_long], lengths[is_long]
      inside = tf.ragged.range(begins + 1, begins + sizes).values
      return tf.sort(tf.concat([starts, inside[keep(inside)]], 0))

    def starts_word(index):
      left, right = tf.gather(ids, index - 1), tf.gather(ids, index)
      return ~tokenizers.joins(self.tokenizer, left, right)

    return add(add(starts, starts_word), lambda index: index > 0)


def _cut(lengths, starts_document, room):
  """Fills sequences with units, one after the other.

  Args:
    lengths: `int32[units]`: the lengths of the units, none above `room`.
    starts_document: `bool[units]`: whether a [SEP] precedes the unit, unless it
      is the first of its sequence.
    room: The most ids in a sequence.

  Returns:
    `bool[units]`: whether the unit is the first of a sequence.
  """
  separator = tf.cast(starts_document, tf.int32)
  count = tf.size(lengths)
  before = tf.concat([[0], tf.cumsum(lengths + separator)], 0)
  # For each unit, the first that does not fit in a sequence that starts there.
  ends = before[:-1] + separator + room
  beyond = tf.searchsorted(before, ends, side="right") - 1

  # Sequences start at unit 0, beyond[0], beyond[beyond[0]], ...: after n rounds
  # the first 2**n of them are marked, and `jump` leads 2**n sequences ahead.
  def double(is_start, jump):
    reached = tf.math.unsorted_segment_max(is_start, jump, count + 1)
    return tf.maximum(is_start, reached), tf.gather(jump, jump)

  first = tf.one_hot(0, count + 1, dtype=tf.int32)
  jump = tf.concat([beyond, [count]], 0)
  is_start, _ = tf.while_loop(
    lambda _, jump: jump[0] < count, double, (first, jump)
  )
  return is_start[:-1] > 0
