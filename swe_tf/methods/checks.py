"""Checks that a method can be applied as configured. Imports no TensorFlow.

Reads the config as nested tables, so that a wrong one is refused before
TensorFlow is imported, and again when the experiment is complete. A plug-in's
method has its own requirements in `catalog.Method.check`.
"""

from collections.abc import Mapping
from typing import Any

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import method as method_lib
from swe_tf.modeling import registry
from swe_tf.sharing import loops as loops_lib
from swe_tf.sharing import units as units_lib
from swe_tf.sharing import untie_step as untie_step_lib

Table = Mapping[str, Any]

_CHOICES = {
  "share": (units_lib.ALL, units_lib.KERNELS),
  "second_moments": (method_lib.COPY, method_lib.OWN),
  "untied_as": ("copies", "noise", "redraw", "identity"),
}
_LEAST = {"untie_warmup_steps": 0, "own_layers": 0, "second_moment_passes": 1}


def check(values: Table) -> None:
  """Raises unless an experiment can be trained by the method it chooses.

  Args:
    values: The complete experiment as nested tables.

  Raises:
    UsageError: If it cannot.
  """
  task, train_steps = values["task"], values["trainer"]["train_steps"]
  sharing = task["sharing"]
  tau = untie_step_lib.resolve_untie_step(
    train_steps,
    untie_step=sharing["untie_step"],
    untie_fraction=sharing["untie_fraction"],
  )
  check_rule(sharing)
  if sharing["rule"] == catalog.STAGED and sharing["unit_size"] > 0:
    untie_step_lib.check_stages(tau, stages_of(sharing, train_steps))
  encoder = registry.encoder_of(task)
  num_layers = encoder.num_layers if encoder else None
  choice = catalog.read(task, train_steps, num_layers)
  method = catalog.find(choice)
  if method.name in (catalog.SWE, catalog.ALBERT):
    _check_knobs(sharing, values.get("runtime") or {})
    if sharing["loops"]:
      _check_loops(choice, encoder)
  elif method.fractions:
    _check_growth(values, encoder)
  if choice.growth_config.get("fractions") and not method.fractions:
    raise errors.UsageError(
      f"task.growth.fractions is set, but task.growth.method is "
      f"{choice.growth!r}."
    )
  if sharing["loops"] and method.name not in (catalog.SWE, catalog.ALBERT):
    raise errors.UsageError(
      "task.sharing.loops is set, but the method is "
      f"{method.name!r}, which ties no layers."
    )
  if num_layers is not None:
    for units in (sharing, *sharing["stages"]):
      units_lib.check_unit_size(
        units.get("unit_size", 1), num_layers, sharing["own_layers"]
      )


def check_rule(sharing: Table) -> None:
  """Raises unless the untie rule exists and its fields suit it."""
  rule, known = sharing["rule"], catalog.rules()
  if rule not in known:
    one_of = f"one of {', '.join(known)}"
    raise errors.UsageError(
      f"task.sharing.rule ({rule!r}) must be {one_of}; "
      + errors.nearest(rule, known, "see docs/methods.md.")
    )
  if sharing["stages"] and rule != catalog.STAGED:
    raise errors.UsageError(
      f"task.sharing.stages is set, but task.sharing.rule is "
      f"{rule!r}, which has none; set it to {catalog.STAGED!r}."
    )
  if rule in ("adaptive", "split"):
    untie_step_lib.check_correlation(
      sharing["check_interval"], sharing["rho"], sharing["patience"]
    )


def stages_of(sharing: Table, train_steps: int) -> list[tuple[int, int]]:
  """Returns when each stage begins, and how many units then form one."""
  stages = []
  for stage in sharing["stages"]:
    stage = {"unit_size": 1, "from_fraction": 0.0} | stage
    if stage["unit_size"] % sharing["unit_size"]:
      raise errors.UsageError(
        f"task.sharing.stages has units of {stage['unit_size']} layers, which "
        "is not a multiple of task.sharing.unit_size "
        f"({sharing['unit_size']})."
      )
    begin = untie_step_lib.resolve_untie_step(
      train_steps,
      untie_step=stage.get("from_step"),
      untie_fraction=stage["from_fraction"],
    )
    stages.append((begin, stage["unit_size"] // sharing["unit_size"]))
  return sorted(stages)


def _check_knobs(sharing: Table, runtime: Table) -> None:
  for name, allowed in _CHOICES.items():
    if sharing[name] not in allowed:
      raise errors.UsageError(
        f"task.sharing.{name} ({sharing[name]!r}) must be "
        f"{' or '.join(allowed)}."
      )
  for name, least in _LEAST.items():
    if sharing[name] < least:
      raise errors.UsageError(
        f"task.sharing.{name} ({sharing[name]}) must be at least {least}."
      )
  scale = sharing["shared_learning_rate_scale"]
  if scale <= 0.0:
    raise errors.UsageError(
      f"task.sharing.shared_learning_rate_scale ({scale}) must be above 0."
    )
  if (
    sharing["second_moments"] == method_lib.OWN
    and runtime.get("mixed_precision_dtype") == "float16"
  ):
    raise errors.UsageError(
      "task.sharing.second_moments=own needs float32 or bfloat16: under "
      "float16, a gradient-only pass would need its own loss scaling."
    )


def _check_loops(
  choice: catalog.Choice, encoder: registry.Encoder | None
) -> None:
  if choice.rule != catalog.FIXED:
    raise errors.UsageError(
      f"task.sharing.loops is set, but task.sharing.rule is {choice.rule!r}: "
      f"loops need {catalog.FIXED!r}."
    )
  if encoder is None or not isinstance(encoder.family, registry.Bert):
    raise errors.UsageError(
      "task.sharing.loops is for BERT, but the encoder is another one."
    )
  if choice.num_layers is None:
    return
  units_lib.check_unit_size(
    choice.unit_size, choice.num_layers, choice.own_layers
  )
  assert choice.untie_step is not None  # The rule is the fixed one.
  loops_lib.resolve(
    [{"loops": 0} | stage for stage in choice.sharing["loops"]],
    num_units=(choice.num_layers - 2 * choice.own_layers) // choice.unit_size,
    untie_step=choice.untie_step,
    train_steps=choice.train_steps,
  )


def _check_growth(values: Table, encoder: registry.Encoder | None) -> None:
  """Raises unless the model of an experiment can grow as configured."""
  growth, mode = values["task"]["growth"], values["task"]["sharing"]["mode"]
  method = growth["method"]
  if mode != catalog.NONE:
    raise errors.UsageError(
      f"task.growth.method is {method!r} and task.sharing.mode is "
      f"{mode!r}: a model that grows shares no weights. Set "
      "task.sharing.mode=none, or task.growth.method=none."
    )
  _check_fractions(growth)
  if growth["noise"] < 0.0:
    raise errors.UsageError(
      f"task.growth.noise ({growth['noise']}) must not be < 0."
    )
  if values["trainer"]["optimizer_config"].get("ema") is not None:
    raise errors.UsageError(
      f"task.growth.method is {method!r}, but trainer.optimizer_config.ema is "
      "set: models of different sizes cannot be averaged. Unset one of them."
    )
  if encoder is None or not isinstance(encoder.family, registry.Bert):
    raise errors.UsageError(
      f"task.growth.method={method} is for BERT, but the encoder is "
      "another one. Set task.model.encoder.type to 'any' or 'bert'."
    )
  _check_size(method, encoder.params)


def _check_fractions(growth: Table) -> None:
  method = growth["method"]
  default = catalog.methods()[method].fractions
  fractions = growth["fractions"] or list(default)
  if len(fractions) != len(default):
    raise errors.UsageError(
      f"task.growth.fractions ({fractions}) must be {len(default)} for "
      f"{method!r}, one for each time the model grows."
    )
  if not all(0.0 <= f <= 1.0 for f in fractions):
    raise errors.UsageError(
      f"task.growth.fractions ({fractions}) must be between 0.0 and 1.0."
    )
  if sorted(fractions) != list(fractions):
    raise errors.UsageError(
      f"task.growth.fractions ({fractions}) must be in ascending order."
    )


def _check_size(method: str, params: Table) -> None:
  if method == "stacking":
    num_layers = params.get("num_layers") or 0
    if num_layers % 4:
      raise errors.UsageError(
        f"num_layers ({num_layers}) must be divisible by 4 for "
        "'stacking': it trains a quarter of them first."
      )
    return
  for name in (
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
    "embedding_size",
  ):
    value = params.get(name) or 0
    if value % 2:
      raise errors.UsageError(
        f"{name} ({value}) must be even for 'net2net': it trains a model of "
        "half the width first."
      )
