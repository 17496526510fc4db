"""A study on a Ray cluster of two nodes, one of which is killed."""

import time

import pytest

from tests.end_to_end import studies

cluster_utils = pytest.importorskip("ray.cluster_utils")

pytestmark = pytest.mark.slow  # 16 runs, each with its own TensorFlow.

_SEEDS = 8
_PATIENCE = 1500


@pytest.fixture(name="cluster")
def fixture_cluster():
  cluster = cluster_utils.Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1}
  )
  yield cluster
  cluster.shutdown()


def _at_work(runs):
  """Returns the runs that have a checkpoint but are not finished."""
  found = [path.parent for path in runs.glob("*/checkpoint")]
  return [run for run in found if not (run / "result.json").exists()]


def test_all_runs_end_with_the_weights_of_the_local_run(tmp_path, cluster):
  study = studies.write(
    tmp_path,
    {"method": ["swe"], "seed": list(range(_SEEDS))},
    train_steps=600,
    validation_interval=600,
    checkpoint_interval=5,
    max_to_keep=2,
  )
  node = cluster.add_node(num_cpus=1)
  cluster.wait_for_nodes()
  runs, here = tmp_path / "runs", tmp_path / "here"
  process = studies.sweep(study, runs, f"--ray_address={cluster.address}")
  deadline = time.time() + _PATIENCE
  while len(_at_work(runs)) < 2:  # One of them is on the node.
    assert process.poll() is None, process.stdout.read()
    assert time.time() < deadline
    time.sleep(0.05)
  cluster.remove_node(node, allow_graceful=False)
  output, _ = process.communicate(timeout=_PATIENCE)
  assert process.returncode == 0, output
  logs = [path.read_text() for path in runs.glob("*/log.txt")]
  assert len(logs) == _SEEDS
  assert sum("restored from checkpoint" in log for log in logs) == 1

  local = studies.sweep(study, here)
  output, _ = local.communicate(timeout=_PATIENCE)
  assert local.returncode == 0, output
  for path in here.glob("*/result.json"):
    studies.assert_same_weights(path.parent, runs / path.parent.name)
    assert (runs / path.parent.name / "result.json").exists()
