"""`--fresh_masks`: the tokens of masked shards, new masks in every pass."""

import collections
import random

import numpy as np
import pytest
from scipy import stats

from official.nlp.data import create_pretraining_data
from swe_tf import errors
from swe_tf.data import checks
from swe_tf.data import loaders
from swe_tf.data.prepare import manifest
from swe_tf.data.text import token_records
from swe_tf.data.text import vocab as vocab_lib
from tests.data import corpus

_LENGTH, _BATCH = 64, 8


@pytest.fixture(name="shards", scope="module", params=["random", "whole_word"])
def _shards(request, tmp_path_factory):
  """Both kinds of shards of one text; returns the folder and the masking."""
  folder = tmp_path_factory.mktemp("shards")
  # [PAD] is not 0 here: what a record lacks must become [PAD] all the same.
  tokens = corpus.tokens()
  tokens.append(tokens.pop(0))
  (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in tokens))
  (folder / "text.txt").write_text(corpus.text(2_500))
  for fresh in (True, False):
    corpus.prepare(
      input=f"{folder}/text.txt",
      vocab=f"{folder}/vocab.txt",
      output_dir=f"{folder}/{'fresh' if fresh else 'masked'}",
      seq_length=_LENGTH,
      num_shards=5,
      masking=request.param,
      fresh_masks=fresh,
    )
  return folder, request.param


def _config(shards, **changes):
  folder, masking = shards
  fields = dict(
    input_path=f"{folder}/fresh/*.tfrecord",
    seq_length=_LENGTH,
    global_batch_size=_BATCH,
    masking=masking,
    seed=3,
  )
  return loaders.PretrainTextDataConfig(**(fields | changes))


def _masked(shards, **changes):
  folder, _ = shards
  fields = dict(
    input_path=f"{folder}/masked/*.tfrecord",
    seq_length=_LENGTH,
    max_predictions_per_seq=10,
    global_batch_size=_BATCH,
  )
  return corpus.shards_config(**(fields | changes))


def _rows(params, count, **kwargs):
  """Returns `count` examples: their tokens, masks and fates."""
  rows = []
  for batch in loaders.build_dataset(params, **kwargs).unbatch().take(count):
    batch = {name: value.numpy() for name, value in batch.items()}
    ids, mask = batch["input_word_ids"].copy(), batch["masked_lm_weights"] > 0
    places = batch["masked_lm_positions"][mask]
    shown, labels = ids[places], batch["masked_lm_ids"][mask]
    ids[places] = labels
    rows.append((ids.tobytes(), places.tobytes(), shown, labels))
  return rows


def _masked_by_stock(rows, vocabulary, masking):
  """Returns the texts of rows as Model Garden's script masks them."""
  rng, masked = random.Random(0), []
  names = list(vocabulary.tokens)
  for ids in (np.frombuffer(row[0], np.int32) for row in rows):
    tokens = [names[i] for i in ids if names[i] != "[PAD]"]
    shown, places, labels = (
      create_pretraining_data.create_masked_lm_predictions(
        tokens, 0.15, 10, names, rng, masking == "whole_word"
      )
    )
    both = (np.take(shown, places), labels)
    masked.append((None, None, *(list(map(names.index, b)) for b in both)))
  return masked


def test_tokens_are_those_of_masked_shards_and_masks_are_new(shards):
  folder, masking = shards
  counts = [
    manifest.load(f"{folder}/{kind}")["splits"]["train"]
    for kind in ("fresh", "masked")
  ]
  size = counts[0]["size"]
  assert counts[0]["tokens"] == counts[1]["tokens"] and size > 300
  expected = counts[1]["predictions"]
  assert counts[0]["predictions"] == pytest.approx(expected, rel=0.02)
  rows = _rows(_config(shards), 2 * size)
  first, second = rows[:size], rows[size:]
  texts = collections.Counter(row[0] for row in first)
  assert texts == collections.Counter(row[0] for row in second)
  written = _rows(
    _masked(shards, is_training=False, drop_remainder=False), size
  )
  assert texts == collections.Counter(row[0] for row in written)
  # A mask of ten tokens hardly ever comes again.
  masks = {row[:2] for row in first}
  assert sum(row[:2] in masks for row in second) < 0.02 * size
  # Nor are those of one pass dealt out again to other sequences.
  assert len({row[1] for row in rows}) > 0.95 * len(rows)
  # What becomes of the masked tokens is as in the shards for stock, and as by
  # Model Garden's own script, which masks the same texts.
  vocabulary = vocab_lib.Vocabulary.load(f"{folder}/vocab.txt")
  table = []
  for some in (rows, written, _masked_by_stock(rows, vocabulary, masking)):
    shown, labels = (np.concatenate(c) for c in list(zip(*some))[2:])
    is_mask = shown == vocabulary.id_of("[MASK]")
    kinds = np.where(is_mask, 0, np.where(shown == labels, 1, 2))
    table.append(np.bincount(kinds, minlength=3))
  print(f"masked, kept, random: {[each.tolist() for each in table]}")
  assert stats.chi2_contingency(table).pvalue > 1e-4
  assert table[0].sum() / 2 == pytest.approx(table[1].sum(), rel=0.03)


def test_resumes_bit_for_bit(shards):
  undisturbed = [row[:2] for row in _rows(_config(shards), 120 * _BATCH)]
  for step in (1, 60, 113):  # The last one is in the second pass.
    found = _rows(_config(shards), 5 * _BATCH, start_step=step)
    place = step * _BATCH
    assert [r[:2] for r in found] == undisturbed[place : place + 5 * _BATCH]


def test_what_does_not_fit_is_refused(shards, tmp_path):
  folder, _ = shards
  fresh = f"{folder}/fresh/*.tfrecord"
  assert checks.check_input(_config(shards)) == []
  other = tmp_path / "vocab.txt"
  other.write_text("".join(f"{token}\n" for token in corpus.tokens()))
  for params, message in (
    (_masked(shards, input_path=fresh), "no masks.*bert_pretraining_text"),
    (_config(shards, seq_length=32), "seq_length is 32.*made with 64"),
    (
      _config(shards, input_path=f"{fresh},{folder}/masked/*.tfrecord"),
      "masked are not shards of tokens",
    ),
    (
      _config(shards, input_path=f"{fresh},{folder}/vocab.txt"),
      "one kind only",
    ),
    (_config(shards, vocab_file_path=f"{other}"), "different vocabulary"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      checks.check_input(params)
  with pytest.raises(errors.UsageError, match="70000 tokens.*at most 65536"):
    token_records.check_vocabulary(70_000)
