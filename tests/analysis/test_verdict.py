"""The opening of a report: what it may say of which runs."""

import pytest
from scipy import stats

from swe_tf.analysis import comparisons
from swe_tf.analysis import statistics
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run

_BASE = (3.0, 3.1, 2.9)


def _say(*roots):
  return comparisons.say(fake_runs.summarize(*roots))


def _write(root, name, losses, **fields):
  for seed, loss in enumerate(losses):
    write_run(root / f"{name}{seed}", config(seed=seed, **fields), loss)


@pytest.mark.parametrize(
  "losses,words",
  [
    ((2.9, 3.02, 2.79), "swe 1x24 (untied after 10) pays: "),
    ((3.1, 3.22, 2.99), "swe 1x24 (untied after 10) costs: "),
    # The same mean as that of the first, and two of three seeds lower.
    ((2.4, 3.4, 2.91), "Cannot tell whether swe 1x24 (untied after 10) pays: "),
  ],
)
def test_the_verdict_is_that_of_a_paired_t_test(tmp_path, losses, words):
  _write(tmp_path, "base", _BASE)
  _write(tmp_path, "swe", losses, sharing=swe())
  (line,) = _say(tmp_path)
  assert line.startswith(words)
  test = stats.ttest_rel(losses, _BASE)
  assert ("Cannot tell" in line) == (test.pvalue > 0.05)
  low, high = test.confidence_interval(0.95)
  mean = sum(losses) / 3 - sum(_BASE) / 3
  interval = f"(95% interval {low:+.4f} to {high:+.4f}, 3 seeds)"
  assert f"is {mean:+.4f} nats per token {interval}." in line


def test_one_seed_says_nothing_whatever_the_difference(tmp_path):
  _write(tmp_path, "base", _BASE)
  _write(tmp_path, "swe", (1.0,), sharing=swe())
  (line,) = _say(tmp_path)
  assert line == (
    "Cannot tell (one seed) whether swe 1x24 (untied after 10) pays: its final "
    "validation loss minus the baseline's is -2.0000 nats per token."
  )


def _interval(low, high):
  return statistics.Interval((low + high) / 2, low, high, 3)


@pytest.mark.parametrize(
  "difference, flops, equal_loss, word",
  [
    ((0.1, 0.2), 1.0, (1.1, 1.2), "costs"),
    # Cheaper and better, dearer and worse.
    ((-0.2, -0.1), 0.5, None, "pays"),
    ((0.1, 0.2), 2.0, (2.1, 2.2), "costs"),
    # Worse for fewer FLOPs: not even half way does the baseline need more.
    ((0.1, 0.2), 0.8, (1.1, 1.2), "costs"),
    # The baseline needed more, but was in the middle of its schedule.
    ((0.1, 0.2), 0.5, (0.6, 0.7), "cannot tell (unequal FLOPs)"),
    ((-0.2, -0.1), 2.0, None, "cannot tell (unequal FLOPs)"),
  ],
)
def test_where_the_flops_differ(difference, flops, equal_loss, word):
  equal = equal_loss and _interval(*equal_loss)
  assert statistics.verdict(_interval(*difference), flops, equal) == word


def test_it_is_about_the_paper_s_method_and_names_a_lower_one(tmp_path):
  _write(tmp_path, "base", _BASE)
  _write(tmp_path, "swe", (3.1, 3.22, 2.99), sharing=swe())
  _write(tmp_path, "late", (3.0, 3.1, 2.8), sharing=swe(0.5))
  _write(tmp_path, "grown", (2.0, 2.1, 1.9), growth="stacking")
  (line,) = _say(tmp_path)
  assert line.startswith("swe 1x24 (untied after 10) costs")
  assert "The lowest of 3 methods is stacking: -1.0000 nats per token" in line


def test_an_unequal_number_of_rates_is_said(tmp_path):
  _write(tmp_path, "base", _BASE)
  _write(tmp_path, "swe", (2.9, 3.02, 2.79), sharing=swe())
  _write(tmp_path, "fast", (4.0,), sharing=swe(), rate=2e-3)
  assert (
    "It was tried with 2 learning rates, the baseline with 1: not a fair "
    "comparison."
  ) in _say(tmp_path)[0]


def test_nothing_to_compare_says_why(tmp_path):
  write_run(tmp_path / "a", config(), 2.0, end=60)
  assert _say(tmp_path) == [
    "There is nothing to compare: no pre-training run has finished."
  ]
  write_run(tmp_path / "b", config(seed=1, sharing=swe()), 2.0)
  assert "no baseline has finished" in _say(tmp_path)[0]
  write_run(tmp_path / "c", config(seed=2), 2.0)
  assert "finished with the same seed as the baseline" in _say(tmp_path)[0]


def test_several_settings_are_counted_and_listed(tmp_path):
  _write(tmp_path, "base", _BASE)
  _write(tmp_path, "swe", (3.1, 3.22, 2.99), sharing=swe())
  _write(tmp_path, "wide", (2.0,), width=16)
  _write(tmp_path, "wideswe", (2.5,), width=16, sharing=swe())
  _write(tmp_path, "alone", (2.0,), width=32)
  first, *settings = _say(tmp_path)
  assert first == (
    "Against the baseline, in 2 settings: costs in 1, cannot tell (one seed) "
    "in 1."
  )
  assert ["width 8," in settings[0], "width 16," in settings[1]] == [True] * 2
  assert "swe 1x24 (untied after 10) costs" in settings[0]
