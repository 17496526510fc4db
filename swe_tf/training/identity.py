"""Whether a checkpoint is of the run that is about to continue from it.

What defines a run's training is stored in each of its checkpoints: its config,
a fingerprint of its data, how many workers share the input, how many replicas
a batch, and what gin binds; for a stock task that shares, `described` is the
`task.sharing` and `task.growth` that its config lacks.
A run that finds something else there would continue as another run, so it is
refused, unless the user accepts the changes. These are then kept in
`accepted_changes.json` of its directory, for whoever reads its results.
"""

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
from typing import Any

import tensorflow as tf
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import sameness
from swe_tf import yaml_files
from swe_tf.data import bad_shards
from swe_tf.modeling import checkpoint_files
from swe_tf.sharing import untie_step as untie_step_lib

_KEY = "identity/.ATTRIBUTES/py_state"
_STEP_KEY = "global_step/.ATTRIBUTES/VARIABLE_VALUE"
_TAU = "tau"
_TAU_FIELDS = ("task.sharing.untie_step", "task.sharing.untie_fraction")
_OPTIONAL = (*sameness.SCORED, "data.")
_SHOWN = 4

Change = tuple[str, Any, Any]  # A field, its value then, and now.


class Identity(tf.train.experimental.PythonState):
  """What defines a run, for its checkpoints."""

  def __init__(self, config: Any, **others: Any):
    """Initializes the identity of an experiment that was validated.

    `others` define the run besides: `data`, see `fingerprints`, and what only a
    run that is about to train knows. What is not given is not compared.
    """
    # As it will be read from JSON.
    content = {"config": config.as_dict()} | others
    self._content = json.loads(json.dumps(content, default=str))

  def serialize(self) -> str:
    return json.dumps(self._content)

  def deserialize(self, string_value) -> None:
    """Keeps what this run is: it was compared before."""

  def changes(self, path: str) -> list[Change]:
    """Returns how this run differs from the one that wrote a checkpoint."""
    then = read(path)
    if then is None:
      return []  # Not written by this trainer.
    step = int(checkpoint_files.reader(path).get_tensor(_STEP_KEY))
    now = self._content
    # An earlier version may have stored less.
    now = {name: now[name] for name in now if name in then}
    # That of the doctor is already in its config.
    kept = {*now, "described"}
    then = {name: then[name] for name in then if name in kept}
    follows = _follows_tau(then) and _follows_tau(now)
    found = sameness.difference(_fields(then, follows), _fields(now, follows))
    # The same files at another place are the same data.
    data = then.get("data", {}).items() & now.get("data", {}).items()
    paths = {f"task.{name}.input_path" for name, _ in data}
    return [
      (field, one, other)
      for field, one, other in found
      if field not in paths
      # A run may be without an evaluation, or its data not in files.
      and not (field.startswith(_OPTIONAL) and not (one and other))
      # Both taus are still ahead.
      and not (field == _TAU and step < (one or 0) and step <= (other or 0))
    ]

  @contextlib.contextmanager
  def check(
    self, path: str, model_dir: str | None, accept: bool
  ) -> Iterator[None]:
    """Raises `UsageError` if another run wrote the checkpoint.

    If the changes are accepted, they are printed instead and, once the block
    has restored the checkpoint, recorded.
    """
    found = self.changes(path)
    if not found:
      yield
      return
    shown = "; ".join(
      f"{field} was {then!r} and is {now!r}"
      for field, then, now in found[:_SHOWN]
    )
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    if not accept:
      self._put_back_config(path, model_dir)
      raise errors.UsageError(
        f"{path} is of another run, and this one would continue from it: "
        f"{shown}{more}. Choose another model_dir, use that run's config, or "
        "set accept_changes if you mean it; the change is then recorded."
      )
    yield
    messages.warn(f"{path}: accepted: {shown}{more}.")
    if model_dir and tf.distribute.get_strategy().extended.should_checkpoint:
      entry = {"checkpoint": os.path.basename(path), "changes": found}
      earlier = sameness.accepted(model_dir)
      if json.loads(json.dumps(entry)) not in earlier:
        where = os.path.join(model_dir, sameness.ACCEPTED_NAME)
        files.write_json(where, [*earlier, entry])

  def _put_back_config(self, path: str, model_dir: str | None) -> None:
    """Undoes what Model Garden's driver writes before it builds anything."""
    place = files.as_path(model_dir or "") / "params.yaml"
    if not model_dir or not place.exists():
      return
    then = read(path)
    written = yaml_files.read(place)
    is_ours = not sameness.difference(written, self._content["config"])
    if then and is_ours and sameness.difference(written, then["config"]):
      files.write_text(place, yaml.safe_dump(then["config"], sort_keys=False))


def read(path: str) -> dict[str, Any] | None:
  """Returns what a checkpoint says about its run; None if it says nothing."""
  reader = checkpoint_files.reader(path)
  if not reader.has_tensor(_KEY):
    return None
  return json.loads(reader.get_tensor(_KEY))


def fingerprints(shards: Mapping[str, bad_shards.Shards]) -> dict[str, str]:
  """Returns a fingerprint of the files of each data set that has some."""
  return {
    name: sameness.fingerprint(each.paths)[:16]
    for name, each in shards.items()
    # What a task of one's own reads may be named there, and be no file.
    if any(map(tf.io.gfile.exists, each.paths))
  }


def workers(strategy: tf.distribute.Strategy) -> int:
  """Returns how many processes or hosts share the input of a strategy."""
  extended = strategy.extended
  hosts: int | None = getattr(extended, "num_hosts", None)  # Of TPUs.
  return hosts or getattr(extended, "_num_workers", None) or 1


def _follows_tau(content: Mapping[str, Any]) -> bool:
  """Whether only tau, and the decay, follow from the number of steps.

  The decay has steps of its own, so such a run may be made longer.
  """
  task = content["config"]["task"] | content.get("described", {})
  sharing, growth = task.get("sharing") or {}, task.get("growth") or {}
  stages = sharing.get("loops") or sharing.get("stages")
  grows = growth.get("method") not in ("none", "", None)
  return not stages and not grows and sharing.get("rule", "fixed") == "fixed"


def _fields(content: Mapping[str, Any], follows_tau: bool) -> dict[str, Any]:
  """Returns what defines a run, by field."""
  described = content.get("described", {})
  config = content["config"]
  config = config | {"task": config["task"] | described}
  aside = "config", "described"
  others = {k: v for k, v in content.items() if k not in aside}
  fields = sameness.flatten(others) | {
    field: value
    for field, value in sameness.flatten(config).items()
    if sameness.defines_training(field) or field.startswith(sameness.SCORED)
  }
  if follows_tau:
    for field in (*_TAU_FIELDS, "trainer.train_steps"):
      fields.pop(field, None)
    sharing = config["task"].get("sharing") or {}
    if sharing.get("mode") == "swe":
      fields[_TAU] = untie_step_lib.resolve_untie_step(
        config["trainer"]["train_steps"],
        untie_step=sharing.get("untie_step"),
        untie_fraction=sharing.get("untie_fraction"),
      )
  return fields
