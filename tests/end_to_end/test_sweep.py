"""`swe sweep` in processes: printed commands, and Ray with a killed node."""

import json
import shlex

import pytest

from tests import tiny
from tests.end_to_end import programs

_SEEDS = 8


def _sweep(study, output_dir, *flags):
  return programs.swe("sweep", study, f"--output_dir={output_dir}", *flags)


@pytest.mark.slow
def test_printed_commands_run_and_a_sweep_collects_their_results(tmp_path):
  axes = {"method": ["baseline", "swe"], "seed": [1]}
  study = programs.write_study(tmp_path, axes)
  runs, here = tmp_path / "runs", tmp_path / "here"
  assert "left: " in programs.succeed(_sweep(study, runs, "--dry_run"))
  assert not runs.exists()
  output = programs.succeed(_sweep(study, runs, "--print_commands"))
  lines = [line for line in output.splitlines() if line.startswith("swe ")]
  assert len(lines) == 2, output
  for line in lines:
    programs.succeed(programs.swe(*shlex.split(line)[1:]))
  programs.succeed(_sweep(study, runs))
  output = programs.succeed(_sweep(study, here, "--jobs=2"))
  for name in ("baseline-seed1", "swe-seed1"):
    tiny.assert_same_checkpoints(runs / name, here / name)
    results = [
      json.loads((folder / name / "result.json").read_text())
      for folder in (runs, here)
    ]
    assert results[0]["metrics"] == results[1]["metrics"]
    loss = results[1]["metrics"]["validation_loss"]
    assert f"{loss:.4f}" in output and results[1]["cpu_seconds"] > 1
  _, output = programs.finish(_sweep(study, here, "--dry_run"))
  assert output.count("finished") >= 2 and "left: 0.00e+00 FLOPs" in output


@pytest.fixture(name="cluster")
def fixture_cluster():
  cluster_utils = pytest.importorskip("ray.cluster_utils")
  cluster = cluster_utils.Cluster(
    initialize_head=True, head_node_args={"num_cpus": 1}
  )
  yield cluster
  cluster.shutdown()


def _at_work(runs):
  """Returns the runs that have a checkpoint but are not finished."""
  found = [path.parent for path in runs.glob("*/checkpoint")]
  return [run for run in found if not (run / "result.json").exists()]


@pytest.mark.slow  # 16 runs, each with its own TensorFlow.
def test_all_runs_end_with_the_weights_of_the_local_run(tmp_path, cluster):
  study = programs.write_study(
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
  process = _sweep(study, runs, f"--ray_address={cluster.address}")
  # One of them is on the node.
  programs.wait_until(lambda: len(_at_work(runs)) >= 2, process)
  cluster.remove_node(node, allow_graceful=False)
  programs.succeed(process)
  logs = [path.read_text() for path in runs.glob("*/log.txt")]
  assert len(logs) == _SEEDS
  assert sum("restored from checkpoint" in log for log in logs) == 1

  programs.succeed(_sweep(study, here))
  for path in here.glob("*/result.json"):
    tiny.assert_same_checkpoints(path.parent, runs / path.parent.name)
    assert (runs / path.parent.name / "result.json").exists()
