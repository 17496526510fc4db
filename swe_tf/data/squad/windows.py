"""The lengths of windows over long paragraphs. Imports no TensorFlow."""

import dataclasses

from swe_tf import errors


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
  """How a question and its paragraph become sequences, as BERT does it.

  Attributes:
    max_seq_length: The length of every sequence.
    max_query_length: Longer questions are cut to this many tokens.
    doc_stride: By how many tokens the windows over a long paragraph advance.
  """

  max_seq_length: int = 384
  max_query_length: int = 64
  doc_stride: int = 128

  def __post_init__(self):
    # [CLS] question [SEP] paragraph [SEP].
    if self.max_seq_length - self.max_query_length - 3 < 1:
      raise errors.UsageError(
        f"max_seq_length ({self.max_seq_length}) leaves no token for the "
        f"paragraph after max_query_length ({self.max_query_length}) and 3 "
        "special tokens; raise the former or lower the latter."
      )
