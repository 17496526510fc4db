"""The cluster that `TF_CONFIG` describes: checked before anything connects."""

import json
import os

from official.core import config_definitions as cfg
from swe_tf import errors

_JOBS = ("chief", "worker")


def num_workers(runtime: cfg.RuntimeConfig) -> int:
  """Returns the number of workers; raises `UsageError` for a wrong cluster."""
  if runtime.worker_hosts:
    return len(runtime.worker_hosts.split(","))
  text = os.environ.get("TF_CONFIG", "").strip()
  if not text:
    os.environ.pop("TF_CONFIG", None)  # TensorFlow would parse "" as JSON.
  kind = runtime.distribution_strategy
  if not text or kind == "tpu":  # A TPU's hosts find each other.
    return 1
  wrong = _why_wrong(text)
  if wrong:
    raise errors.UsageError(
      f"TF_CONFIG ({text}) {wrong}; docs/tpu.md has an example."
    )
  jobs = json.loads(text).get("cluster", {})
  count = sum(len(hosts) for hosts in jobs.values()) or 1
  if count > 1 and kind != "multi_worker_mirrored":
    raise errors.UsageError(
      f"TF_CONFIG has {count} workers, but runtime.distribution_strategy is "
      f"{kind!r}, so each would train alone; set it to "
      "'multi_worker_mirrored', or unset TF_CONFIG."
    )
  return count


def is_chief() -> bool:
  """Whether this process saves; `TF_CONFIG` was checked."""
  content = json.loads(os.environ.get("TF_CONFIG", "{}"))
  first = "chief" if "chief" in content.get("cluster", {}) else "worker"
  task = content.get("task", {"type": first, "index": 0})
  return (task["type"], task["index"]) == (first, 0)


def _why_wrong(text: str) -> str:
  """Returns what is wrong with a `TF_CONFIG`; empty if nothing is."""
  try:
    content = json.loads(text)
  except ValueError:
    hint = ": put this host's number in place of INDEX" * ("INDEX" in text)
    return f"is not JSON{hint}"
  if content == {}:
    return ""  # TensorFlow's default: no cluster.
  content = content if isinstance(content, dict) else {}
  jobs, task = content.get("cluster"), content.get("task")
  if not isinstance(jobs, dict) or not jobs or not isinstance(task, dict):
    return 'has no table "cluster", or no "task", which worker this is'
  for job, hosts in jobs.items():
    is_list = isinstance(hosts, list) and all(":" in str(h) for h in hosts)
    if job not in _JOBS or not is_list:
      return (
        f"has {job!r} in its cluster, where only chief and worker can be, with "
        'a list of hosts such as ["host0:2222"]'
      )
  hosts, index = jobs.get(str(task.get("type"))), task.get("index")
  if not hosts:
    return f"has a task of type {task.get('type')!r}, which the cluster has not"
  if type(index) is not int or not 0 <= index < len(hosts):
    return f"has the task index {index!r}, not one from 0 to {len(hosts) - 1}"
  return ""
