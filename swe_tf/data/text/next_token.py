"""Every token predicts the one after it: the features of a causal model.

The features are those of the masked language model, so that its task, head and
metrics serve both. Only a `causal` encoder can learn from them: any other sees
the tokens that it has to predict.
"""

import tensorflow as tf

from swe_tf import errors

MASKING = "next_token"


def check(seq_length: int, max_predictions: int) -> None:
  """Raises unless there is one prediction for each token but the last."""
  if max_predictions != seq_length - 1:
    raise errors.UsageError(
      f"`max_predictions_per_seq` ({max_predictions}) must be {seq_length - 1} "
      f"with masking={MASKING}: one for each token but the last."
    )


def predict_next(ids: tf.Tensor, padding: int) -> dict[str, tf.Tensor]:
  """Returns the features of a batch of sequences.

  Args:
    ids: `int32[batch, seq_length]`.
    padding: The id of [PAD], which is never predicted.

  Example:

  >>> features = predict_next(tf.constant([[2, 7, 8, 0]]), padding=0)
  >>> features["masked_lm_ids"].numpy().tolist()
  [[7, 8, 0]]
  >>> features["masked_lm_weights"].numpy().tolist()
  [[1.0, 1.0, 0.0]]
  """
  labels = ids[:, 1:]
  positions = tf.range(labels.shape[1], dtype=tf.int32)
  return {
    "input_word_ids": ids,
    "input_mask": tf.cast(ids != padding, tf.int32),
    "masked_lm_positions": tf.broadcast_to(positions, tf.shape(labels)),
    "masked_lm_ids": labels,
    "masked_lm_weights": tf.cast(labels != padding, tf.float32),
  }
