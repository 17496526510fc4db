"""`TF_CONFIG`: a cluster, or one line that says what is wrong with it."""

import os
import subprocess
import sys

import pytest

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.configs import cluster
from swe_tf.configs import limits
from tests import tiny

_CLUSTER = '"cluster": {"worker": ["a:1", "b:2"]}'


def _task(index):
  return f'{{{_CLUSTER}, "task": {{"type": "worker", "index": {index}}}}}'


def _count(monkeypatch, text, strategy="multi_worker_mirrored"):
  monkeypatch.setenv("TF_CONFIG", text)
  runtime = cfg.RuntimeConfig(distribution_strategy=strategy)
  return cluster.num_workers(runtime)


@pytest.mark.parametrize(
  "text, expected", [("", 1), ("{}", 1), (_task(0), 2), (_task(1), 2)]
)
def test_counts_the_workers(monkeypatch, text, expected):
  assert _count(monkeypatch, text) == expected
  assert cluster.is_chief() == (text != _task(1))
  assert os.environ.get("TF_CONFIG") != ""  # TensorFlow does not take it.


def test_the_first_worker_beside_a_chief_does_not_save(monkeypatch):
  text = _task(0).replace('"worker":', '"chief": ["c:3"], "worker":')
  assert _count(monkeypatch, text) == 3
  assert not cluster.is_chief()
  monkeypatch.setenv(
    "TF_CONFIG", text.replace('"type": "worker"', '"type": "chief"')
  )
  assert cluster.is_chief()


@pytest.mark.parametrize(
  "text, message",
  [
    (_task("INDEX"), "not JSON: put this host's number in place of INDEX"),
    ("3", 'has no table "cluster"'),
    (_task(0).replace("worker", "ps", 1), "has 'ps' in its cluster"),
    (_task(0).replace('"a:1"', "3"), "a list of hosts"),
    ('{"cluster": {"worker": "a:1"}, "task": {}}', "a list of hosts"),
    (f'{{{_CLUSTER}, "task": 1}}', 'or no "task"'),
    (f'{{{_CLUSTER}, "task": {{"type": "x"}}}}', "a task of type 'x'"),
    (_task(2), "index 2, not one from 0 to 1"),
    (_task(-1), "index -1, not"),
    (_task('"0"'), "index '0', not"),
    (_task("true"), "index True, not"),
  ],
)
def test_a_wrong_cluster_is_one_line(monkeypatch, text, message):
  with pytest.raises(errors.UsageError) as raised:
    _count(monkeypatch, text)
  assert message in str(raised.value) and "\n" not in str(raised.value)


def test_workers_must_be_able_to_share_the_batch(monkeypatch):
  with pytest.raises(errors.UsageError, match="each would train alone"):
    _count(monkeypatch, _task(0), "mirrored")
  data = {"task": {"train_data": {"global_batch_size": 9}}}
  config = tiny.config_of(tiny.overrides("x"), data)
  limits.check_replicas(config)
  with pytest.raises(errors.UsageError, match=r"\(9\) cannot .* 2 replicas"):
    limits.check_replicas(config, workers=2)
  with pytest.raises(errors.UsageError, match="'parameter_server'. must be"):
    tiny.config_of(
      tiny.overrides("x"),
      {"runtime": {"distribution_strategy": "parameter_server"}},
    )


_BEFORE_THE_STRATEGY = """
from tensorflow.python.eager import context
from swe_tf.doctor import checks
from swe_tf.studies import experiments
from tests import tiny

config = tiny.config_of(tiny.overrides("dummy"))
experiments.check_metrics(config)
checks.check_devices(config)
assert context.context()._context_handle is None, "TensorFlow has started"
"""


def test_what_is_checked_before_workers_connect_runs_no_op():
  # Else "Collective ops must be configured at program startup".
  subprocess.run([sys.executable, "-c", _BEFORE_THE_STRATEGY], check=True)
