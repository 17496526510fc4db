"""The config of a run as a report sees it: its method, setting and budget.

A setting is everything that two runs must have in common to be compared: model,
data, budget, optimizer. The rest of a config is the method, the peak learning
rate and the seed. `methods.catalog` defines the methods, `modeling.registry`
the encoders. Imports no TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

# Prefixes of the fields that are not part of the setting.
_NO_SETTING = (
  "task.seed",
  "task.train_data.seed",
  "task.sharing.",
  "task.growth.",
  # Makes the same update, in less memory.
  "task.micro_batches",
  # These decide what is kept and shown of a run, not what is computed.
  "trainer.steps_per_loop",
  "trainer.summary_interval",
  "trainer.checkpoint_interval",
  "trainer.max_to_keep",
  "trainer.validation_interval",
  "trainer.continuous_eval_timeout",
  "trainer.best_checkpoint_",
)
_RATE = "trainer.optimizer_config.learning_rate."
_RATE_NAMES = ("initial_learning_rate", "learning_rate")
_TAU_NAMES = ("untie_step", "untie_fraction")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
  """The config of a pre-training run.

  Attributes:
    method: Its name in the catalog; the mode, if the method is not registered.
    rule: When it unties: `fixed`, `staged`, `adaptive`, `split`, ..., or what
      departs from Algorithm 1, such as `3-6 loops` or `share=kernels`.
    unit_size: The number of layers in a unit; None for a method without units.
    untie_step: Tau; None if the config does not fix it.
    train_steps: The number of steps in the run.
    learning_rate: The peak learning rate.
    seed: The seeds of the weights and of the data.
    batch_size: Sequences per step.
    seq_length: Tokens per sequence.
    data: The name of the training data: a path or a TFDS name.
    encoder: The encoder; None if no family knows it.
    variant: All fields that are specific to the method, flat and sorted.
    setting: All fields that the runs of a comparison have in common, flat and
      sorted.
  """

  method: str
  rule: str
  unit_size: int | None
  untie_step: int | None
  train_steps: int
  learning_rate: float | None
  seed: tuple[int | None, ...]
  batch_size: int | None
  seq_length: int | None
  data: str
  encoder: registry.Encoder | None
  variant: Mapping[str, str]
  setting: Mapping[str, str]

  @property
  def num_layers(self) -> int | None:
    return self.encoder.num_layers if self.encoder else None

  @property
  def size(self) -> sizes.Size | None:
    try:
      return self.encoder.size if self.encoder else None
    except KeyError:  # An encoder that has no such size.
      return None

  @property
  def width(self) -> int | None:
    return self.size.hidden_size if self.size else None

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
  def label(self) -> str:
    """The method with its rule, if that is not the paper's."""
    fixed = self.rule == catalog.FIXED
    return self.method if fixed else f"{self.method} {self.rule}"

  @property
  def is_fixed_sharing(self) -> bool:
    """Whether this is Algorithm 1 with any unit and any tau above 0."""
    names = (catalog.SWE, catalog.ALBERT)
    return self.method in names and self.rule == catalog.FIXED

  @property
  def has_papers_tau(self) -> bool:
    """Whether everything is untied after the paper's fraction of the steps."""
    tau = untie_step_lib.resolve_untie_step(self.train_steps)
    return self.rule == catalog.FIXED and self.untie_step == tau


def is_pretraining(content: Any) -> bool:
  """Whether this is the config of a run that a report compares."""
  return (
    isinstance(content, dict)
    and bool((content.get("trainer") or {}).get("train_steps"))
    and "model" in (content.get("task") or {})
    and "data_dir" not in content["task"]
  )


def read(content: Mapping[str, Any]) -> RunConfig:
  """Reads the content of a `params.yaml` for which `is_pretraining` holds.

  Raises:
    UsageError: If no run can have this config.
  """
  task = content["task"]
  train_data = task.get("train_data") or {}
  train_steps = int(content["trainer"]["train_steps"])
  encoder = registry.encoder_of(task)
  leaves = _flatten(content)
  rates = [
    leaves.pop(name)
    for name in list(leaves)
    if name.startswith(_RATE) and name.split(".")[-1] in _RATE_NAMES
  ]
  data = train_data.get("tfds_name") or train_data.get("input_path") or ""
  seed, data_seed = task.get("seed"), train_data.get("seed")
  return RunConfig(
    **_method(
      catalog.read(task, train_steps, encoder.num_layers if encoder else None)
    ),
    train_steps=train_steps,
    learning_rate=float(rates[0]) if rates else None,
    seed=(seed, seed if data_seed is None else data_seed),
    batch_size=train_data.get("global_batch_size"),
    seq_length=train_data.get("seq_length"),
    data=",".join(data) if isinstance(data, list) else str(data),
    encoder=encoder,
    setting={
      name: value
      for name, value in sorted(leaves.items())
      if not name.startswith(_NO_SETTING)
    },
  )


def _flatten(value: Any, prefix: str = "") -> dict[str, str]:
  """Returns the leaves of nested dicts as text; unset ones are left out."""
  if isinstance(value, dict):
    leaves: dict[str, str] = {}
    for key, child in value.items():
      leaves |= _flatten(child, f"{prefix}.{key}" if prefix else str(key))
    return leaves
  return {} if value is None or value in ({}, []) else {prefix: str(value)}


def _method(choice: catalog.Resolved) -> dict[str, Any]:
  """Returns the fields of `RunConfig` that describe the method."""
  mode, growth = choice.sharing.mode, choice.growth.method
  names = [n for n in (growth, mode) if n != catalog.NONE]
  name, rule = " + ".join(map(str, names)), catalog.FIXED
  unit_size, tau, own = None, None, _without_defaults(choice)
  try:
    method = catalog.find(choice)
  except errors.UsageError:
    pass  # Its plug-in is not loaded, so what it ignores is not known.
  else:
    name = method.name
    unit_size, tau, rule = _unit_tau_rule(choice, method)
    known = ["unit_size", *(_TAU_NAMES if rule in catalog.rules() else ())]
    own = {key: own[key] for key in own if key not in known}
    loops = [str(stage["loops"]) for stage in own.get("loops") or ()]
    if name in (catalog.SWE, catalog.ALBERT) and (loops or choice.knobs):
      # Not Algorithm 1 as printed: no number of the paper compares with it.
      changes = [f"{'-'.join(loops)} loops"] if loops else []
      changes += [f"{key}={value}" for key, value in choice.knobs.items()]
      rule = " ".join([rule] * (rule != catalog.FIXED) + changes)
    if rule == catalog.FIXED and (
      name in (catalog.BASELINE, catalog.SWE, catalog.ALBERT)
      or mode == catalog.NONE
    ):
      own = {"bindings": own.get("bindings")}
  if growth != catalog.NONE:
    own["growth"] = choice.growth.as_dict()
  axes = {"method": name, "unit_size": unit_size, "untie_step": tau}
  return {
    "method": name,
    "rule": rule,
    "unit_size": unit_size,
    "untie_step": tau,
    "variant": dict(sorted(_flatten(axes | own).items())),
  }


def _without_defaults(choice: catalog.Resolved) -> dict[str, Any]:
  """Returns `task.sharing` without knobs that are off.

  A run from before a knob existed is the same as one that leaves it off.
  """
  off = {"recipe", *catalog.KNOBS} - choice.knobs.keys()
  if "second_moments" in off:
    off.add("second_moment_passes")
  sharing = choice.sharing.as_dict()
  return {key: value for key, value in sharing.items() if key not in off}


def _unit_tau_rule(
  choice: catalog.Resolved, method: catalog.Method
) -> tuple[int | None, int | None, str]:
  """Returns the unit size, tau and rule, if they matter to the method."""
  is_baseline = method.name == catalog.BASELINE
  unit_size: int | None = choice.sharing.unit_size
  if "units" in method.ignores:
    unit_size = choice.num_layers if is_baseline else None
  if "tau" in method.ignores:
    ends = {catalog.BASELINE: 0, catalog.ALBERT: choice.train_steps}
    return unit_size, ends.get(method.name), catalog.FIXED
  # Fields of the same name mean the same for every method.
  sharing = choice.sharing.as_dict() | {"mode": catalog.SWE}
  tau = catalog.read({"sharing": sharing}, choice.train_steps, None).untie_step
  return unit_size, tau, choice.sharing.rule
