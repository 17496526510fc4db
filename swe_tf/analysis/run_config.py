"""The config of a run as a report sees it: one row of the frame of runs.

A setting is everything that two runs must have in common to be compared: model,
data, budget, optimizer. The rest of a config is the method, the peak learning
rate and the seed. `methods.catalog` tells methods apart, `modeling.registry`
encoders, `configs.sameness` the fields that matter.
"""

from collections.abc import Mapping
import pathlib
from typing import Any

from swe_tf import errors
from swe_tf.configs import sameness
from swe_tf.data.text import budget
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

# Fields that runs of one setting may differ in, besides the peak rate.
_NO_SETTING = (
  "task.seed",
  "task.train_data.seed",
  "task.sharing.",
  "task.growth.",
)
_RATE = "trainer.optimizer_config.learning_rate."
_RATE_NAMES = ("initial_learning_rate", "learning_rate")
_TAU_NAMES = ("untie_step", "untie_fraction")


def is_pretraining(content: Any) -> bool:
  """Whether this is the config of a run that a report compares."""
  return (
    isinstance(content, dict)
    and bool((content.get("trainer") or {}).get("train_steps"))
    and "model" in (content.get("task") or {})
    and "data_dir" not in content["task"]
  )


def describe(
  content: Mapping[str, Any], axes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
  """Returns what a report knows about a run before it looks at its results.

  Args:
    content: A `params.yaml` for which `is_pretraining` holds.
    axes: `axes` of its `run.json`, if it was started by a study.

  Returns:
    `method`: its name in the catalog; the mode, if it is not registered.
    `label`: the name for readers; `title`: with unit and untie step.
    `rule`: when it unties, or what departs from Algorithm 1.
    `unit_size`, `unit`: None for a method without units.
    `untie_step`: tau; None if the config does not fix it.
    `is_fixed`: whether this is Algorithm 1 with any unit and any tau above 0.
    `is_papers`: whether it unties after the paper's fraction of the steps.
    `variant`: the fields that are specific to the method, flat.
    `setting`: the fields that the runs of a comparison have in common, flat;
    `setting_title`: the same in words.
    `steps`, `tokens`, `batch_size`, `seq_length`, `vocab_size`, `model_size`,
    `num_layers`, `width`, `data`, `seed`, `learning_rate`.
    `phases`: the steps and the FLOPs per step of each phase; None if unknown.

  Raises:
    UsageError: If no run can have this config.
  """
  task = content["task"]
  data = task.get("train_data") or {}
  steps = int(content["trainer"]["train_steps"])
  encoder = registry.encoder_of(task)
  num_layers = encoder.num_layers if encoder else None
  choice = catalog.read(task, steps, num_layers)
  try:
    size = encoder.size if encoder else None
  except KeyError:  # An encoder that has no such size.
    size = None
  setting = sameness.flatten(content)
  rates = [
    setting.pop(name)
    for name in list(setting)
    if name.startswith(_RATE) and name.split(".")[-1] in _RATE_NAMES
  ]
  batch, length = data.get("global_batch_size"), data.get("seq_length")
  paths = data.get("tfds_name") or data.get("input_path") or ""
  path = ",".join(paths) if isinstance(paths, list) else str(paths)
  width = size.hidden_size if size else None
  short = "/".join(pathlib.PurePath(path.split(",")[0]).parts[-2:])
  seeds = task.get("seed"), data.get("seed")
  return {
    **_method(task, choice, axes or {}),
    "steps": steps,
    "tokens": steps * batch * length if batch and length else None,
    "batch_size": batch,
    "seq_length": length,
    "vocab_size": encoder.vocab_size if encoder else None,
    "model_size": size,
    "num_layers": num_layers,
    "width": width,
    "data": path,
    "learning_rate": float(rates[0]) if rates else None,
    "seed": "/".join(str(s) for s in dict.fromkeys(seeds) if s is not None),
    "phases": encoder and size and _phases(task, choice, encoder),
    "setting": {
      name: value
      for name, value in setting.items()
      if sameness.defines_result(name) and not name.startswith(_NO_SETTING)
    },
    "setting_title": (
      f"{num_layers} layers of width {width}, {steps:,} steps of {batch} x "
      f"{length} tokens of {short or 'unnamed data'}"
    ),
  }


def _method(
  task: Mapping[str, Any], choice: Any, axes: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the part of a row that describes the method.

  Args:
    task: The config of the task.
    choice: What `catalog.read` makes of it.
    axes: The run's place in its study.
  """
  sharing, growth = task.get("sharing") or {}, task.get("growth") or {}
  mode, rule = sharing.get("mode", catalog.NONE), catalog.FIXED
  grows = growth.get("method") or catalog.NONE
  name = " + ".join(n for n in (grows, mode) if n != catalog.NONE)
  unit_size, tau = None, None
  # A knob that is off is the same as one that is left out.
  off = {"recipe", *catalog.KNOBS} - choice.knobs.keys()
  own = {key: value for key, value in sharing.items() if key not in off}
  try:
    method = catalog.find(choice)
  except errors.UsageError:
    pass  # Its plug-in is not loaded, so what it ignores is not known.
  else:
    name = method.name
    if "units" not in method.ignores:
      unit_size = int(sharing.get("unit_size") or 1)
    elif name == catalog.BASELINE:
      unit_size = choice.num_layers
    if "tau" in method.ignores:
      ends = {catalog.BASELINE: 0, catalog.ALBERT: choice.train_steps}
      tau = ends.get(name)
    else:
      rule = sharing.get("rule") or catalog.FIXED
      # Fields of the same name mean the same for every method.
      as_swe = {"sharing": sharing | {"mode": catalog.SWE}}
      tau = catalog.read(as_swe, choice.train_steps, None).untie_step
    known = ["unit_size", *(_TAU_NAMES if rule in catalog.rules() else ())]
    own = {key: value for key, value in own.items() if key not in known}
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
  if grows != catalog.NONE:
    own["growth"] = growth
  is_fixed = name in (catalog.SWE, catalog.ALBERT) and rule == catalog.FIXED
  papers_tau = untie_step_lib.resolve_untie_step(choice.train_steps)
  unit = None
  if unit_size and choice.num_layers:
    unit = f"{unit_size}x{choice.num_layers // unit_size}"
  label = title = name if rule == catalog.FIXED else f"{name} {rule}"
  # What the user called it, except that a baseline is one under any name, and
  # that a study which sweeps tau calls both ends of the range `swe`.
  asked = axes.get("arm")
  if name != catalog.ALBERT:
    asked = asked or axes.get("method") or sharing.get("recipe")
  if asked and asked != name and name != catalog.BASELINE:
    label = title = str(asked)
  elif name == catalog.SWE:
    title += f" {unit}" + ("" if tau is None else f", untied after {tau:,}")
  elif name != catalog.BASELINE and (unit_size or 1) > 1:
    title += f" {unit}"
  return {
    "method": name,
    "label": label,
    "title": title,
    "rule": rule,
    "unit_size": unit_size,
    "unit": unit,
    "untie_step": tau,
    "is_fixed": is_fixed,
    "is_papers": is_fixed and tau == papers_tau,
    "variant": sameness.flatten(
      {"method": name, "unit_size": unit_size, "untie_step": tau} | own
    ),
  }


def _phases(
  task: Mapping[str, Any], choice: Any, encoder: registry.Encoder
) -> tuple[tuple[int, int], ...] | None:
  """Returns the steps and the FLOPs per step of each phase, if known."""
  data, sharing = task.get("train_data") or {}, task.get("sharing") or {}
  batch, length = data.get("global_batch_size"), data.get("seq_length")
  rate = data.get("masking_rate")
  predictions = data.get("max_predictions_per_seq") or (
    rate and length and budget.max_predictions(length, rate)
  )
  if not (batch and length and predictions):
    return None
  try:
    method = catalog.find(choice)
    if choice.untie_step is None and sharing.get("mode") == catalog.SWE:
      # Tied layers are computed one by one, so that any tau costs the same.
      known = sharing | {"rule": catalog.FIXED, "untie_step": 0}
      choice = catalog.read(
        {**task, "sharing": known}, choice.train_steps, choice.num_layers
      )
    phases = method.phases(choice, encoder.size)
  except errors.UsageError:
    return None
  vocabulary = encoder.vocab_size or 0
  return tuple(
    (
      phase.steps,
      sizes.training_flops(phase.size, batch, length, predictions, vocabulary),
    )
    for phase in phases
  )
