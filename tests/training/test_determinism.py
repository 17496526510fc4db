"""One seed, `task.seed`, makes a run: the same again, bit for bit, or another.

The data order, the masks, the initial weights and dropout all follow from it,
whether a run is interrupted or not. `benchmarks/faults.py` shows the same for
processes that are killed.
"""

import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from official.core import task_factory
from tests import tiny
from tests.data import corpus

_SEED, _TAU, _STEPS = 3, 3, 6
_DROPOUT = {"dropout_rate": 0.1, "attention_dropout_rate": 0.1}
RECORDS, TEXT = "swe/bert_pretraining", "swe/bert_pretraining_text"


class DeterminismTest(tf.test.TestCase, parameterized.TestCase):
  def _text(self, folder):
    files = {name: corpus.text(200, seed) for seed, name in enumerate("abc")}
    base = tiny.overrides(f"{folder}/?.txt")
    vocabulary = corpus.write(folder, **files)
    for name in ("train_data", "validation_data"):
      base["task"][name] |= {"vocab_file_path": vocabulary}
    encoder = base["task"]["model"]["encoder"]["any"]
    encoder["vocab_size"] = len(corpus.tokens())
    return base

  def _configs(self, experiment):
    """Returns a function from a seed to the config."""
    folder = self.create_tempdir().full_path
    make = tiny.written if experiment == RECORDS else self._text
    base = make(folder)
    base["task"]["model"]["encoder"]["any"] |= _DROPOUT
    base["task"]["sharing"]["untie_step"] = _TAU
    base["trainer"] |= tiny.every(2, train_steps=_STEPS)
    base["trainer"]["validation_interval"] = _STEPS
    return lambda seed: tiny.config_of(
      base, {"task": {"seed": seed}}, experiment=experiment
    )

  def _train(self, config, *stops):
    directory = self.create_tempdir().full_path
    for stop in stops:
      tf.random.set_seed(stop)  # Nothing may depend on it.
      trainer = tiny.train(config, directory, stop)
    return trainer

  @parameterized.parameters(RECORDS, TEXT)
  @pytest.mark.slow
  def test_a_run_is_the_same_again_interrupted_or_not(self, experiment):
    config = self._configs(experiment)(_SEED)
    resumed = self._train(config, 1, _TAU, _STEPS)
    tiny.assert_same_state(resumed, self._train(config, _STEPS))

  @parameterized.parameters(RECORDS, TEXT)
  def test_everything_follows_from_one_seed(self, experiment):
    config_of = self._configs(experiment)

    @functools.cache
    def start(seed, again):
      """Returns the beginnings of a run, by what is random about them."""
      del again
      config = config_of(seed)
      task = task_factory.get_task(config.task)
      batches = [
        {name: value.numpy() for name, value in batch.items()}
        for batch in task.build_inputs(config.task.train_data).take(3)
      ]
      runner = tiny.make_runner(config, self.create_tempdir().full_path)
      trainer = runner.trainer
      dropout = trainer.checkpoint.dropout
      names = {"order": "masked_lm_ids", "masks": "masked_lm_positions"}
      return {
        **{k: np.stack([b[v] for b in batches]) for k, v in names.items()},
        "weights": np.concatenate(
          [v.numpy().ravel() for v in trainer.model.trainable_variables]
        ),
        "dropout": np.stack([g.state.numpy() for g in dropout]),
      }

    one, again, other = start(_SEED, 0), start(_SEED, 1), start(_SEED + 1, 0)
    for name, value in one.items():
      self.assertAllEqual(value, again[name], name)
      self.assertNotAllEqual(value, other[name], name)

  def _first(self, config_of, task_seed, **changes):
    """Returns the first batch, with the data config changed."""
    config = config_of(task_seed)
    params = config.task.train_data.replace(**changes)
    task = task_factory.get_task(config.task)
    return next(iter(task.build_inputs(params)))["input_word_ids"]

  def test_the_data_may_have_a_seed_of_its_own(self):
    first = functools.partial(self._first, self._configs(RECORDS))
    self.assertAllEqual(first(0), first(0, seed=0))
    self.assertAllEqual(first(4), first(0, seed=4))
    self.assertAllEqual(first(4, seed=7), first(0, seed=7))

  def test_evaluations_of_all_seeds_see_the_same_masks(self):
    first = functools.partial(self._first, self._configs(TEXT))
    one, other = (first(seed, is_training=False) for seed in (0, 4))
    self.assertAllEqual(one, other)
