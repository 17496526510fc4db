"""Which numbers of the paper stand beside which runs."""

import pytest

from swe_tf.analysis import reference
from swe_tf.analysis import run_config
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe

_LARGE = dict(
  layers=24,
  width=1024,
  num_attention_heads=16,
  intermediate_size=4096,
  vocab_size=30522,
  steps=500_000,
  data="shards/wikibooks/*.tfrecord",
)


def _config(batch_size=4, seq_length=16, **fields):
  content = config(**fields)
  content["task"]["train_data"] |= {
    "global_batch_size": batch_size,
    "seq_length": seq_length,
  }
  return run_config.read(content)


@pytest.mark.parametrize(
  "fields, gain",
  [
    # Small models: BERT-large for 0.5M steps, Tables 1, 4 and 5.
    (dict(sharing=swe()), 73.92 - 73.66),
    (dict(sharing=swe(), layers=12), 73.92 - 73.66),
    (dict(sharing=swe(unit_size=2)), 74.16 - 73.66),
    (dict(sharing=swe(unit_size=4)), 73.90 - 73.66),
    (dict(sharing=swe(unit_size=6)), 73.99 - 73.66),
    (dict(sharing=swe(unit_size=12)), 73.82 - 73.66),
    (dict(growth="net2net"), 72.34 - 73.66),
    (dict(sharing={"mode": "reparameterize"}), 73.57 - 73.66),
    # The paper's own sizes and budgets, Tables 1, 2 and 3.
    (dict(sharing=swe(), layers=12, width=768), 69.21 - 68.74),
    (dict(sharing=swe(), width=768), 72.03 - 71.68),
    (dict(sharing=swe(), width=1536, steps=1_000_000), 77.16 - 77.23),
    (
      dict(sharing=swe(), width=1024, steps=1_000_000, data="xlnet/a"),
      71.76 - 71.75,
    ),
    # Not the same in kind.
    (dict(sharing=swe(unit_size=2), layers=12), None),
    (dict(sharing=swe(unit_size=8)), None),
    (dict(sharing=swe(0.2)), None),
    (dict(sharing=swe(1.0)), None),
    (dict(sharing=swe(rule="adaptive")), None),
    (dict(sharing={"mode": "stem_branch"}), None),
    (dict(growth="stacking"), None),
    (dict(), None),
  ],
)
def test_gain_in_accuracy(fields, gain):
  found = reference.gain(_config(**fields), "MLM")
  assert found == (None if gain is None else pytest.approx(gain))


@pytest.mark.parametrize(
  "changes, score",
  [
    ({}, 73.66),
    (dict(sharing=swe()), 73.92),
    (dict(sharing=swe(unit_size=2)), 74.16),
    (dict(growth="net2net"), 72.34),
    (dict(sharing=swe(), steps=1_000_000), 75.09),
    (dict(data="xlnet/*"), 70.06),
    (dict(sharing=swe(0.2)), None),
    (dict(data="shards/*.tfrecord"), None),
    (dict(steps=400_000), None),
    (dict(width=64), None),
    (dict(num_attention_heads=8), None),
    (dict(vocab_size=100), None),
    (dict(batch_size=256), None),
    (dict(seq_length=128), None),
  ],
)
def test_a_score_needs_the_paper_s_model_data_and_budget(changes, score):
  fields = dict(batch_size=512, seq_length=512) | _LARGE | changes
  assert reference.score(_config(**fields), "MLM") == score


def test_the_scale_is_said():
  small = _config(sharing=swe())
  assert reference.scale_title(reference.scale(small)) == (
    "BERT-large, Wikipedia + books, 0.5M steps"
  )
  base = _config(sharing=swe(), layers=12, width=768, steps=1_000_000)
  assert reference.scale_title(reference.scale(base)) == (
    "BERT-base, Wikipedia + books, 1M steps"
  )
  # Table 5 has BERT-large alone.
  other = _config(growth="net2net", layers=12, width=768)
  assert reference.scale(other) == reference.DEFAULT_SCALE
