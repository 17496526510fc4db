"""What the config of a run says: its method, its setting, its budget.

A setting is everything that two runs must have in common to be compared: model,
data, budget, optimizer. What is left of a config is the method, the peak
learning rate and the seed. Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import yaml

from swe_tf import errors
from swe_tf import files

BASELINE, ALBERT, SWE = "baseline", "albert", "swe"
FIXED, STAGED = "fixed", "staged"

# They decide what is kept and shown of a run, not what is computed.
_BOOKKEEPING = frozenset(
  {
    "trainer.steps_per_loop",
    "trainer.summary_interval",
    "trainer.checkpoint_interval",
    "trainer.max_to_keep",
    "trainer.validation_interval",
    "trainer.continuous_eval_timeout",
    "trainer.best_checkpoint_eval_metric",
    "trainer.best_checkpoint_export_subdir",
    "trainer.best_checkpoint_metric_comp",
  }
)
_SEEDS = ("task.seed", "task.train_data.seed")
_RATE = "trainer.optimizer_config.learning_rate."
_RATE_NAMES = ("initial_learning_rate", "learning_rate")


class _Loader(yaml.SafeLoader):
  """Reads tags of Python objects as the lists and dicts they are made of."""


def _construct_any(loader, suffix, node):
  del suffix
  if isinstance(node, yaml.SequenceNode):
    return loader.construct_sequence(node, deep=True)
  if isinstance(node, yaml.MappingNode):
    return loader.construct_mapping(node, deep=True)
  return loader.construct_scalar(node)


_Loader.add_multi_constructor("", _construct_any)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
  """The config of a pre-training run, read.

  Attributes:
    method: `baseline`, `albert`, `swe`, `reparameterize`, `net2net`, ...
    rule: When `swe` unties: `fixed`, `staged`, `adaptive`, `split`.
    unit_size: The layers of a unit; None for a method without units.
    untie_step: Tau; None if the config does not fix it.
    train_steps: The steps of the run.
    learning_rate: The peak.
    seed: Of the weights and of the data.
    batch_size: Sequences a step.
    seq_length: Tokens a sequence.
    data: The name of the training data: a path or a TFDS name.
    encoder: The size of the encoder, by the names of its config.
    variant: All that is the method's own, flat.
    setting: All that the runs of a comparison have in common, flat.
  """

  method: str
  rule: str
  unit_size: int | None
  untie_step: int | None
  train_steps: int
  learning_rate: float | None
  seed: tuple
  batch_size: int | None
  seq_length: int | None
  data: str
  encoder: Mapping[str, Any]
  variant: Mapping[str, str]
  setting: Mapping[str, str]

  @property
  def num_layers(self) -> int | None:
    return self.encoder.get("num_layers")

  @property
  def width(self) -> int | None:
    return self.encoder.get("hidden_size")

  @property
  def unit(self) -> str | None:
    """The unit in the paper's notation, such as 1x24."""
    if not self.unit_size or not self.num_layers:
      return None
    return f"{self.unit_size}x{self.num_layers // self.unit_size}"

  @property
  def tokens(self) -> int | None:
    if not self.batch_size or not self.seq_length:
      return None
    return self.train_steps * self.batch_size * self.seq_length

  @property
  def is_fixed_sharing(self) -> bool:
    """Whether this is Algorithm 1 with any unit and any tau above 0."""
    return self.method == ALBERT or (self.method == SWE and self.rule == FIXED)


def read_config(path: files.PathLike) -> Any:
  """Returns the content of a `params.yaml`; faults are `UsageError`s."""
  try:
    return yaml.load(files.read_text(path), _Loader)
  except yaml.YAMLError as error:
    line = str(error).splitlines()[0]
    raise errors.UsageError(f"{path}: not YAML ({line}).") from error


def is_pretraining(config: Any) -> bool:
  """Whether this is a config of a run that a report compares."""
  return (
    isinstance(config, dict)
    and bool((config.get("trainer") or {}).get("train_steps"))
    and "model" in (config.get("task") or {})
    and "data_dir" not in config["task"]
  )


def flatten(value: Any, prefix: str = "") -> dict[str, str]:
  """Returns the leaves of nested dicts as text; unset ones are left out."""
  if isinstance(value, dict):
    leaves = {}
    for key, child in value.items():
      leaves |= flatten(child, f"{prefix}.{key}" if prefix else str(key))
    return leaves
  return {} if value is None or value in ({}, []) else {prefix: str(value)}


def facts_of(config: Mapping[str, Any]) -> Facts:
  """Reads a config for which `is_pretraining` holds."""
  task, trainer = config["task"], config["trainer"]
  train_data = task.get("train_data") or {}
  encoders = task["model"].get("encoder") or {}
  encoder = encoders.get(encoders.get("type", "any")) or {}
  train_steps = int(trainer["train_steps"])
  leaves = flatten(config)
  rates = [
    leaves.pop(name)
    for name in list(leaves)
    if name.startswith(_RATE) and name.split(".")[-1] in _RATE_NAMES
  ]
  return Facts(
    **_method(task, train_steps, encoder.get("num_layers")),
    train_steps=train_steps,
    learning_rate=float(rates[0]) if rates else None,
    seed=(task.get("seed"), train_data.get("seed")),
    batch_size=train_data.get("global_batch_size"),
    seq_length=train_data.get("seq_length"),
    data=_data_name(train_data),
    encoder=encoder,
    setting={
      name: value
      for name, value in leaves.items()
      if name not in _BOOKKEEPING
      and name not in _SEEDS
      and not name.startswith(("task.sharing.", "task.growth."))
    },
  )


def _method(task, train_steps: int, num_layers) -> dict[str, Any]:
  """Returns the fields of `Facts` that tell the method."""
  sharing, growth = task.get("sharing") or {}, task.get("growth") or {}
  mode = sharing.get("mode", "none")
  rule = sharing.get("rule") or FIXED
  unit_size = int(sharing.get("unit_size") or 1)
  tau = None
  if mode == SWE and rule in (FIXED, STAGED):
    tau = sharing.get("untie_step")
    if tau is None:
      tau = round(sharing.get("untie_fraction", 0.1) * train_steps)
  alone = unit_size == num_layers and mode in (SWE, "reparameterize")
  if mode == "none" or tau == 0 or alone:
    mode, rule, tau, unit_size = BASELINE, FIXED, 0, num_layers
  elif mode == SWE and rule == FIXED and tau >= train_steps:
    mode = ALBERT
  variant = {"unit_size": str(unit_size), "untie_step": str(tau)}
  if mode not in (BASELINE, ALBERT, SWE) or rule != FIXED:
    variant |= flatten(
      {
        name: value
        for name, value in sharing.items()
        if name not in ("untie_step", "untie_fraction", "unit_size")
      }
    )
  grown = growth.get("method") or "none"
  if grown != "none":
    variant |= flatten(growth, "growth")
    if mode == BASELINE:
      mode, tau, unit_size = grown, None, None
    else:
      mode = f"{grown} + {mode}"
  return {
    "method": mode,
    "rule": rule,
    "unit_size": unit_size,
    "untie_step": tau,
    "variant": {"method": mode} | variant,
  }


def _data_name(train_data) -> str:
  path = train_data.get("tfds_name") or train_data.get("input_path") or ""
  return ",".join(path) if isinstance(path, list) else str(path)
