"""Which runs are averaged, what comes out, by hand, and what may be said."""

import json

import pytest
from scipy import stats

from swe_tf.analysis import report
from swe_tf.analysis import statistics
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_run
from tests.analysis.fake_runs import write_seeds

_STAGED = swe(rule="staged", stages=[{"unit_size": 4, "from_step": 5}])
_SWE = "swe 1x24, untied after 10"


def test_only_seeds_are_averaged(tmp_path):
  write_seeds(tmp_path, "a", (2.0, 3.0))
  others = [
    config(rate=2e-3),
    config(steps=50),
    config(width=16),
    config(data="d/other.txt"),
    config(layers=12),
    config(dropout_rate=0.1),
    config(sharing=swe(0.1)),
    config(sharing=swe(0.2)),
    config(sharing=swe(0.1, 2)),
    config(sharing=_STAGED),
  ]
  for i, other in enumerate(others):
    write_run(tmp_path / f"other{i}", other, 9.0)
  runs, _ = fake_runs.read(tmp_path)
  sizes = runs.groupby(["setting", "arm", "learning_rate"]).size()
  assert sorted(sizes) == [1] * len(others) + [2]
  titles = runs.setting.unique()
  assert len(titles) == 6
  # Where the words would be the same, they say what differs.
  assert sum("dropout_rate=0.1" in title for title in titles) == 1
  assert sum("dropout_rate=unset" in title for title in titles) == 1


def test_what_is_only_bookkeeping_does_not_part_runs(tmp_path):
  one, two = config(seed=0), config(seed=1)
  two["trainer"] |= {"checkpoint_interval": 7, "recovery_max_trials": 3}
  two["runtime"] = {"num_gpus": 4}
  two["task"]["micro_batches"] = 4
  # Two ways to write one thing.
  one["task"]["sharing"] = swe(0.1)
  two["task"]["sharing"] = swe(0.9, untie_step=10, rule="fixed", rho=0.3)
  write_run(tmp_path / "a", one, 2.0)
  write_run(tmp_path / "b", two, 3.0)
  write_run(tmp_path / "base", config(), 2.5)
  found = fake_runs.summarize(tmp_path).loc[_SWE]
  assert found.validation_loss.mean == pytest.approx(2.5)
  assert found.loss_difference.mean == pytest.approx(-0.5)  # Of seed 0.


def test_a_run_of_a_study_and_the_same_by_hand_are_one_arm(tmp_path):
  axes = {"arm": "planned"}
  write_run(tmp_path / "a", config(sharing=swe()), 2.0, axes=axes)
  write_run(tmp_path / "b", config(seed=1, sharing=swe()), 3.0)
  assert fake_runs.summarize(tmp_path).loc["planned"].seeds == 2


def test_differences_are_taken_seed_by_seed(tmp_path):
  for seed, loss, accuracy in ((0, 4.0, 0.1), (1, 2.0, 0.3), (2, 3.0, 0.9)):
    write_run(tmp_path / f"b{seed}", config(seed=seed), loss, accuracy)
  for seed, loss, accuracy in ((0, 3.0, 0.2), (1, 1.5, 0.5), (5, 0.0, 0.9)):
    write_run(
      tmp_path / f"s{seed}", config(seed=seed, sharing=swe()), loss, accuracy
    )
  arms = fake_runs.summarize(tmp_path)
  found = arms.loc[_SWE]
  assert (found.loss_difference.mean, found.loss_difference.n) == (-0.75, 2)
  assert sorted(found.differences) == [-1.0, -0.5]
  assert found.mlm_gain.mean == pytest.approx(15.0)
  assert found.seeds == 3
  assert arms.loc["baseline"].loss_difference is None


def test_runs_that_do_not_count(tmp_path):
  write_run(tmp_path / "good", config(), 2.0)
  write_run(tmp_path / "again", config(), 2.0)
  write_run(tmp_path / "short", config(seed=1), 1.0, end=99)
  write_run(tmp_path / "nan", config(seed=2), float("nan"))
  write_run(tmp_path / "blown", config(seed=3), float("inf"), end=20)
  write_run(tmp_path / "blind", config(seed=4), 2.0)
  for path in (tmp_path / "blind" / "validation").iterdir():
    path.unlink()
  # A directory that is named twice is read once.
  runs, _ = fake_runs.read(tmp_path, tmp_path / "good")
  assert {run.run.split("/")[-1]: run.status for run in runs.itertuples()} == {
    "again": "finished",
    "good": "repeated seed",
    "short": "unfinished",
    "nan": "diverged",
    "blown": "diverged",
    "blind": "not evaluated",
  }
  found = fake_runs.summarize(tmp_path).loc["baseline"]
  assert (found.seeds, found.validation_loss.mean) == (1, 2.0)
  assert "2 diverged" in found.left_out and "1 repeated seed" in found.left_out
  write_run(tmp_path / "swe", config(sharing=swe()), 2.5)
  assert "Left out of baseline: 2 diverged, 1" in _say(tmp_path)[0]


def test_the_best_rate_is_of_those_with_the_most_seeds(tmp_path):
  for rate, losses in ((1e-3, [2.0, 2.4]), (2e-3, [2.1, 2.2]), (4e-3, [1.0])):
    write_seeds(tmp_path, f"{rate}_", losses, rate=rate)
  found = fake_runs.summarize(tmp_path).loc["baseline"]
  assert (found.learning_rate, found.rates_tried) == (2e-3, 3)


def test_an_adaptive_run_has_the_untie_step_that_was_measured(tmp_path):
  adaptive = config(sharing=swe(rule="adaptive"))
  write_run(tmp_path / "a", adaptive, 2.0, tau=40.0)
  write_run(tmp_path / "b", config(sharing=swe()), 2.0, tau=10.0)
  assert set(fake_runs.summarize(tmp_path).untie_step) == {40.0, 10}


def test_flops_are_those_of_the_phases(tmp_path):
  write_run(tmp_path / "base", config(), 2.0)
  one_loop = swe(0.5, loops=[{"loops": 1}])
  write_run(tmp_path / "one", config(seed=1, sharing=one_loop), 2.0)
  found = fake_runs.summarize(tmp_path).iloc[1]
  # 1 layer for half of the steps, 24 for the rest; the head is small.
  assert found.flops_ratio == pytest.approx((1 + 24) / 48, abs=0.05)


_BASE = (3.0, 3.1, 2.9)


def _say(root):
  return report.say(fake_runs.summarize(root))


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
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", losses, sharing=swe())
  (line,) = _say(tmp_path)
  assert line.startswith(words)
  test = stats.ttest_rel(losses, _BASE)
  assert ("Cannot tell" in line) == (test.pvalue > 0.05)
  low, high = test.confidence_interval(0.95)
  mean = sum(losses) / 3 - sum(_BASE) / 3
  interval = f"(95% interval {low:+.4f} to {high:+.4f}, 3 seeds)"
  assert f"is {mean:+.4f} nats per token {interval}." in line


def test_one_seed_says_nothing_whatever_the_difference(tmp_path):
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", (1.0,), sharing=swe())
  assert _say(tmp_path)[0] == (
    "Cannot tell (one seed) whether swe 1x24 (untied after 10) pays: its final "
    "validation loss minus the baseline's is -2.0000 nats per token."
  )


def _interval(low, high):
  return statistics.Interval((low + high) / 2, low, high, 3)


@pytest.mark.parametrize(
  "difference, flops, word",
  [
    ((0.1, 0.2), 1.0, "costs"),
    # Cheaper and better, dearer and worse.
    ((-0.2, -0.1), 0.5, "pays"),
    ((0.1, 0.2), 2.0, "costs"),
    ((0.1, 0.2), 0.8, "cannot tell (unequal FLOPs)"),
    ((-0.2, -0.1), 2.0, "cannot tell (unequal FLOPs)"),
  ],
)
def test_where_the_flops_differ(difference, flops, word):
  assert statistics.verdict(_interval(*difference), flops) == word


def test_flops_at_an_equal_loss(tmp_path):
  """The baseline was at 3.5 after 60 of 100 steps, and slightly before."""
  for seed in range(2):
    curve = [(40, 4.0), (80, 3.0 - seed / 100)]
    write_run(tmp_path / f"base{seed}", config(seed=seed), 2.0, curve=curve)
    for name, tau, loss in (("cheap", 0.5, 3.5), ("dear", 0.2, 3.5)):
      ours = config(seed=seed, sharing=swe(tau, loops=[{"loops": 1}]))
      write_run(tmp_path / f"{name}{seed}", ours, loss, axes={"arm": name})
  arms = fake_runs.summarize(tmp_path)
  for name, word in (
    ("cheap", "cannot tell (unequal FLOPs)"),
    # Even in the middle of its schedule the baseline needed fewer.
    ("dear", "costs"),
  ):
    found = arms.loc[name]
    assert found.equal_part.mean == pytest.approx(0.599, abs=1e-3)
    ratio = pytest.approx(found.flops_ratio / 0.599, rel=1e-3)
    assert found.equal_loss.mean == ratio and found.verdict == word
  assert "The baseline was there after 0.60 of its steps" in _say(tmp_path)[0]
  write_run(tmp_path / "low", config(sharing=swe()), 1.9)
  assert fake_runs.summarize(tmp_path).loc[_SWE].equal_loss is None


def test_it_is_about_the_paper_s_method_and_names_a_lower_one(tmp_path):
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", (3.1, 3.22, 2.99), sharing=swe())
  write_seeds(tmp_path, "late", (3.0, 3.1, 2.8), sharing=swe(0.5))
  write_seeds(tmp_path, "grown", (2.0, 2.1, 1.9), growth="stacking")
  (line,) = _say(tmp_path)
  assert line.startswith("swe 1x24 (untied after 10) costs")
  assert "The lowest of 3 methods is stacking: -1.0000 nats per token" in line


@pytest.mark.parametrize("entropy, is_said", [(2.75, True), (3.05, False)])
def test_runs_on_the_plateau_say_nothing(tmp_path, entropy, is_said):
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", (3.1, 3.22, 2.99), sharing=swe())
  study = {"unigram_entropy": entropy}
  (tmp_path / "study.json").write_text(json.dumps(study))
  (line,) = _say(tmp_path)
  assert line.startswith(statistics.TOO_SHORT) == is_said


def test_an_unequal_number_of_rates_is_said(tmp_path):
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", (2.9, 3.02, 2.79), sharing=swe())
  write_seeds(tmp_path, "fast", (4.0,), sharing=swe(), rate=2e-3)
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
  write_seeds(tmp_path, "base", _BASE)
  write_seeds(tmp_path, "swe", (3.1, 3.22, 2.99), sharing=swe())
  write_seeds(tmp_path, "wide", (2.0,), width=16)
  write_seeds(tmp_path, "wideswe", (2.5,), width=16, sharing=swe())
  write_seeds(tmp_path, "alone", (2.0,), width=32)
  first, *settings = _say(tmp_path)
  assert first == (
    "Against the baseline, in 2 settings: costs in 1, cannot tell (one seed) "
    "in 1."
  )
  assert ["width 8," in settings[0], "width 16," in settings[1]] == [True] * 2
  assert "swe 1x24 (untied after 10) costs" in settings[0]
