"""A causal language model on raw text: what it sees, what it is asked for."""

import numpy as np
import tensorflow as tf

from official.core import task_factory
from swe_tf import errors
from tests import tiny

_LENGTH = 16
_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh "]


class NextTokenTest(tf.test.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.create_tempdir().full_path
    text = "\n\n".join("abc def gab hed" * 4 for _ in range(40))
    paths = {"text.txt": text, "vocab.txt": "\n".join(_WORDS)}
    for name, content in paths.items():
      with open(f"{folder}/{name}", "w") as file:
        file.write(content)
    self.data = {
      "input_path": f"{folder}/text.txt",
      "vocab_file_path": f"{folder}/vocab.txt",
      "tokenizer": "character",
      "global_batch_size": 4,
      "seq_length": _LENGTH,
      "masking": "next_token",
      "max_predictions_per_seq": _LENGTH - 1,
    }

  def _config(self, causal=True, **changes):
    base = tiny.overrides("")
    data = self.data | changes
    base["task"] |= {"train_data": data, "validation_data": data}
    base["task"]["model"]["encoder"]["any"] |= {"causal": causal}
    return tiny.config_of(base, experiment="swe/bert_pretraining_text")

  def test_each_token_predicts_the_next_and_nothing_is_masked(self):
    config = self._config()
    task = task_factory.get_task(config.task)
    task.check_data()
    batch = next(iter(task.build_inputs(config.task.train_data)))
    ids = batch["input_word_ids"].numpy()
    self.assertNotIn(_WORDS.index("[MASK]"), ids)
    self.assertAllEqual(batch["masked_lm_ids"], ids[:, 1:])
    self.assertAllEqual(batch["masked_lm_positions"][0], np.arange(_LENGTH - 1))
    self.assertAllEqual(batch["masked_lm_weights"], ids[:, 1:] != 0)

  def test_it_trains_and_resumes_where_it_was(self):
    resumed, straight = (
      tiny.train(self._config(), self.create_tempdir().full_path, *stops)
      for stops in ((tiny.TAU - 2, tiny.STEPS), (tiny.STEPS,))
    )
    tiny.assert_same_state(resumed, straight)

  def test_what_would_show_the_answer_is_refused(self):
    for causal, masking in ((False, "next_token"), (True, "random")):
      config = self._config(causal=causal, masking=masking)
      with self.assertRaisesRegex(errors.UsageError, "needs a causal encoder"):
        task_factory.get_task(config.task).check_data()
    config = self._config(max_predictions_per_seq=3)
    with self.assertRaisesRegex(errors.UsageError, "must be 15"):
      task_factory.get_task(config.task).check_data()
