"""Checks that the data of a run can be read, file by file."""

import json
import os

from official.core import config_definitions as cfg
from official.core import input_reader
from official.core import task_factory
from official.nlp.data import pretrain_dataloader
from swe_tf import errors
from swe_tf.data import checks
from swe_tf.data.text import pretrain_text
from swe_tf.doctor import findings
from swe_tf.modeling import registry

# The most files to look into, evenly spaced if there are more.
_SAMPLE = 64


def check_data(config: cfg.ExperimentConfig) -> str:
  """Checks that the data exists, is sound, and fits the model."""
  task = task_factory.get_task(config.task)
  if hasattr(task, "check_data"):
    task.check_data()
  lines = []
  for name in ("train_data", "validation_data"):
    data = getattr(config.task, name)
    if not data.input_path or data.input_path == "dummy":
      continue
    paths = input_reader.match_files(data.input_path)
    lines.append(f"{name}: {_read_records(config, data, paths)}")
  data = config.task.train_data
  lines.append(
    f"batches of {data.global_batch_size} sequences of {data.seq_length} tokens"
  )
  return ", ".join(lines)


def check_hosts(config: cfg.ExperimentConfig) -> str:
  """Counts the hosts that read data; warns if there are fewer files."""
  hosts = num_hosts(config)
  data = config.task.train_data
  if not data.input_path or data.input_path == "dummy":
    return f"{hosts} host(s)"
  try:
    shards = len(input_reader.match_files(data.input_path))
  except ValueError:
    return f"{hosts} host(s)"  # `check_data` reports that nothing matches.
  if shards < hosts:
    raise findings.Warned(
      f"task.train_data.input_path matches {shards} file(s), but {hosts} hosts "
      f"read: each would read all of them and use 1 record in {hosts}; prepare "
      f"{hosts} shards or more."
    )
  return f"{hosts} host(s), {shards} file(s)"


def num_hosts(config: cfg.ExperimentConfig) -> int:
  """Returns the number of workers, from `worker_hosts` or TF_CONFIG."""
  hosts = config.runtime.worker_hosts
  if hosts:
    return len(hosts.split(","))
  text = os.environ.get("TF_CONFIG")
  if not text:
    return 1
  try:
    cluster = json.loads(text).get("cluster", {})
  except (ValueError, AttributeError) as error:
    raise errors.UsageError(
      f"TF_CONFIG ({text}) is not JSON; see docs/tpu.md for an example."
    ) from error
  return max(1, len(cluster.get("worker", ())) + len(cluster.get("chief", ())))


def _read_records(config, data, paths: list[str]) -> str:
  """Checks one record of each file, or of some files if there are many."""
  if isinstance(data, pretrain_text.PretrainTextDataConfig):
    return f"{len(paths)} file(s)"  # The task has read their beginnings.
  encoder = registry.encoder_of(config.task.as_dict())
  some = paths
  if len(paths) > _SAMPLE:
    some = [paths[i * len(paths) // _SAMPLE] for i in range(_SAMPLE)]
  for path in some:
    if isinstance(data, pretrain_dataloader.BertPretrainDataConfig):
      checks.check_record(data, path, encoder.vocab_size if encoder else None)
    elif not path.endswith(".json"):  # The answers of SQuAD.
      checks.check_parses(data, path)
  return f"{len(paths)} file(s), a record of {len(some)} read"
