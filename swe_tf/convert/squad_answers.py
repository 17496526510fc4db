"""SQuAD answers inside a TensorFlow graph: from strings to strings.

The same windows as `swe prepare squad` makes, and the same answers as Model
Garden's `squad_lib.postprocess_output` finds, which needs Python. Only the
white space differs: an answer is cut from the context as it is.
"""

from collections.abc import Callable
import functools

import tensorflow as tf
import tensorflow_text as tf_text

from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import tokenizers

Outputs = dict[str, tf.Tensor]

# What `squad_lib` splits a context at.
_SPACE = r"[ \t\r\n\x{202F}]"
# What `BasicTokenizer` makes tokens of their own: punctuation and CJK.
_ALONE = (
  r"[!-/:-@\[-`{-~\p{P}\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}"
  r"\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}"
  r"\x{2F800}-\x{2FA1F}]"
)


def make_answer_fn(
  logits_fn: Callable[[Outputs], tuple[tf.Tensor, tf.Tensor]],
  tokenizer: tokenizers.Tokenizer,
  windows: squad_questions.Windows,
  *,
  n_best_size: int,
  max_answer_length: int,
) -> Callable[[tf.Tensor, tf.Tensor], Outputs]:
  """Returns a function of questions and contexts, two vectors of strings.

  Its results are `answer` (empty if no span is valid), `score`, the sum of the
  two logits, and `null_odds`: the score of no answer, minus that of the answer.

  Args:
    logits_fn: From a batch of windows to start and end logits.
    tokenizer: Makes token ids of texts.
    windows: How a question and its context become windows.
    n_best_size: How many starts and ends of each window are combined.
    max_answer_length: In tokens.
  """
  vocabulary = tokenizer.vocabulary
  special = [vocabulary.id_of(token) for token in ("[CLS]", "[SEP]")]
  best = min(n_best_size, windows.max_seq_length)
  tokenize = functools.partial(tokenizers.tokenize_as_prepared, tokenizer)

  def answer(question: tf.Tensor, context: tf.Tensor) -> Outputs:
    words, begins, ends = tf_text.regex_split_with_offsets(context, _SPACE)
    pieces = words.with_values(tokenize(words.values))
    ids = pieces.merge_dims(1, 2)  # [questions, (ids)]
    word_of_id = pieces.values.value_rowids()
    asked = tokenize(question)[:, : windows.max_query_length]

    # [CLS] question [SEP] a part of the context [SEP]
    room = windows.max_seq_length - 3 - asked.row_lengths()
    step = tf.minimum(room, windows.doc_stride)
    beyond = tf.maximum(ids.row_lengths() - room, 0)
    counts = 1 + (beyond + step - 1) // step
    owner = tf.repeat(tf.range(tf.size(counts)), counts)
    first = tf.ragged.range(counts).values * tf.gather(step, owner)
    length = tf.gather(ids.row_lengths(), owner) - first
    length = tf.minimum(length, tf.gather(room, owner))
    offset = tf.gather(ids.row_starts(), owner)
    parts = tf.ragged.range(offset + first, offset + first + length)
    questions = tf.gather(asked, owner)
    word_ids, type_ids = tf_text.combine_segments(
      [questions, tf.gather(ids.values, parts)], *special
    )
    # Whole windows: padding, too, has logits that take part in the search.
    size = windows.max_seq_length
    word_ids, mask = tf_text.pad_model_inputs(word_ids, size)
    type_ids, _ = tf_text.pad_model_inputs(type_ids, size)
    start_logits, end_logits = logits_fn(
      dict(input_word_ids=word_ids, input_mask=mask, input_type_ids=type_ids)
    )

    # As Python's floats, so that ties are the same.
    start_logits = tf.cast(start_logits, tf.float64)
    end_logits = tf.cast(end_logits, tf.float64)

    def candidates(logits):
      values, places = tf.math.top_k(logits, best)
      places = tf.cast(places, tf.int64) - questions.row_lengths()[:, None] - 2
      # In the part of the context.
      return values, places, (places >= 0) & (places < length[:, None])

    start, start_at, is_start = candidates(start_logits)
    end, end_at, is_end = candidates(end_logits)
    is_start &= _has_most_context(first, length, owner, start_at)
    extra = end_at[:, None, :] - start_at[:, :, None]
    is_valid = is_start[:, :, None] & is_end[:, None, :]
    is_valid &= (extra >= 0) & (extra < max_answer_length)
    scores = start[:, :, None] + end[:, None, :]
    scores = tf.where(is_valid, scores, tf.float64.min)
    # The first of equal ones: by window, then start, then end.
    by_question = tf.RaggedTensor.from_row_lengths(
      tf.reshape(scores, [-1, best * best]), counts
    ).to_tensor(tf.float64.min)
    by_question = tf.reshape(by_question, [tf.size(counts), -1])
    score = tf.reduce_max(by_question, axis=1)
    chosen = tf.argmax(by_question, axis=1)
    window = tf.cumsum(counts, exclusive=True) + chosen // best**2

    def id_at(places, rank):
      place = tf.gather(places, rank, batch_dims=1)
      return ids.row_starts() + tf.gather(first, window) + place

    first_id = id_at(tf.gather(start_at, window), chosen % best**2 // best)
    last_id = id_at(tf.gather(end_at, window), chosen % best)

    def text(each):
      is_found, context, first, last = each

      def cut():
        begin = begins.values[word_of_id[first]]
        end = ends.values[word_of_id[last]]
        tokens = tf.gather(vocabulary.tokens, ids.values[first : last + 1])
        words = tf.strings.substr(context, begin, end - begin)
        return final_text(tokens, words, tokenizer.lower_case)

      return tf.cond(is_found, cut, lambda: tf.constant(""))

    texts = tf.map_fn(
      text,
      (score > tf.float64.min, context, first_id, last_id),
      fn_output_signature=tf.TensorSpec([], tf.string),
    )
    null = tf.RaggedTensor.from_row_lengths(
      start_logits[:, 0] + end_logits[:, 0], counts
    )
    null_odds = tf.reduce_min(null, axis=1) - score
    limits = tf.float32.min, tf.float32.max  # JSON has no infinities.
    return {
      "answer": texts,
      "score": tf.cast(tf.clip_by_value(score, *limits), tf.float32),
      "null_odds": tf.cast(tf.clip_by_value(null_odds, *limits), tf.float32),
    }

  return answer


def _has_most_context(first, length, owner, places) -> tf.Tensor:
  """Returns whether no other window has more of the context around a token.

  `squad_lib._check_is_max_context` for the `places` [windows, n] in windows.
  """
  place = (first[:, None] + places)[:, :, None]
  left, right = place - first, first + length - 1 - place
  context = tf.cast(tf.minimum(left, right), tf.float64)
  context += 0.01 * tf.cast(length, tf.float64)
  is_in = (left >= 0) & (right >= 0) & (owner == owner[:, None])[:, None, :]
  most = tf.argmax(tf.where(is_in, context, -1.0), axis=-1)
  return most == tf.range(tf.size(first, tf.int64))[:, None]


def final_text(
  tokens: tf.Tensor, words: tf.Tensor, lower_case: bool
) -> tf.Tensor:
  """Returns the part of some words that tokens stand for, or all of them.

  `squad_lib.get_final_text`: it looks for the tokens in the tokenized words,
  and counts characters to find the same place in the words.
  """

  def squeeze(text):
    return tf.strings.strip(tf.strings.regex_replace(text, r"[\s\p{Z}]+", " "))

  def solid(text):
    """Returns the number of characters that are no spaces."""
    text = tf.strings.regex_replace(text, " ", "")
    return tf.strings.length(text, unit="UTF8_CHAR")

  predicted = tf.strings.reduce_join(tokens, separator=" ")
  predicted = squeeze(tf.strings.regex_replace(predicted, " ?##", ""))
  tokenized = tokenizers.normalize(words[None], lower_case)[0]
  tokenized = squeeze(tf.strings.regex_replace(tokenized, _ALONE, r" \0 "))
  characters = tf.strings.unicode_split(words, "UTF-8")
  is_solid = ~tf.strings.regex_full_match(characters, _SPACE)
  places = tf.where(is_solid)[:, 0]
  # There is no search for a string, but splitting at one finds it.
  split = tf.strings.split(tokenized, predicted, maxsplit=1)

  def cut():
    begin = solid(split[0])
    end = begin + solid(predicted) - 1
    part = characters[places[begin] : places[end] + 1]
    return tf.strings.reduce_join(part)

  is_found = (tf.size(split) > 1) & (predicted != "")
  is_aligned = tf.size(places) == solid(tokenized)
  return tf.cond(is_found & is_aligned, cut, lambda: words)
