"""A pilot: whether sharing would pay for a planned run, on its own data.

The planned experiment is cut down to a budget, with its schedule decayed to 0
at the last step, and trained by the arms that matter: the baseline, equal
initial weights, SWE as planned, the recipe, and a model with a quarter of the
layers, which may do for the budget. An arm whose steps cost less is judged
against a baseline of its own, with as few FLOPs and fully decayed. All arms get
the same three learning rates on seed 0; those that are not far behind then get
fresh seeds, and these alone decide. Their number is fixed before the first run.

A pilot is a tuned study (`tuning.py`), run like any sweep. The final loss of
short runs decides, so the verdict is about runs of that length.
"""

from collections.abc import Mapping, Sequence
import contextlib
import math
import os
import tempfile
import time
from typing import Any

import tensorflow as tf

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf.configs import cost
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.modeling import registry as encoders
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.training import runner as runner_lib

BASELINE, SWE, PLANNED = catalog.BASELINE, catalog.SWE, "planned"
EQUAL_INIT, RECIPE = "equal_init", "one_loop"
_RATE_FACTORS = (0.5, 1.0, 2.0)
# How many times the validation loss is measured, at equal intervals.
_VALIDATIONS = 20
# An arm that is further behind gets no more seeds.
_DROP_ABOVE = 0.05


def make_study(
  experiment: str, config: cfg.ExperimentConfig, steps: int, seeds: int
) -> study_file.Study:
  """Returns the pilot of a planned run: `steps` each, `seeds` fresh seeds."""
  rate = config.trainer.optimizer_config.learning_rate
  if rate.type != "polynomial":
    raise errors.UsageError(
      f"trainer.optimizer_config.learning_rate.type is {rate.type!r}; a pilot "
      "can only shorten polynomial schedules."
    )
  peak = float(rate.polynomial.initial_learning_rate)
  arms, overrides = _arms(config, steps), _cut_down(config, steps)
  # A baseline with as few FLOPs for each arm whose steps cost less.
  controls, flops = {}, {}
  for arm, own in arms.items():
    if arm == BASELINE or own["task"]["sharing"].get("loops"):
      made = experiments.get(experiment, overrides, own)
      # Only BERT has a cost model; other models go without such a control.
      with contextlib.suppress(errors.UsageError):
        flops[arm] = cost.training_flops(made)
  for arm in [each for each in flops if each != BASELINE]:
    # Rounded up, in favour of the baseline.
    validations = math.ceil(_VALIDATIONS * flops[arm] / flops[BASELINE])
    controls[arm] = f"{BASELINE}{100 * validations // _VALIDATIONS}"
    few = validations * overrides["trainer"]["validation_interval"]
    arms[controls[arm]] = arms[BASELINE] | {"trainer": {"train_steps": few}}
  study = study_file.Study(experiment, (), overrides, ("validation_loss",), ())
  tuning = {
    "arms": arms,
    # The control that matters most: what a cheap start gains may be what a
    # baseline loses by being too deep for its budget.
    "kept": [arm for arm in arms if arm.startswith("layers")],
    "controls": controls,
    "baseline": BASELINE,
    "learning_rates": [peak * factor for factor in _RATE_FACTORS],
    "seeds": list(range(seeds + 1)),
    "most_rates": len(_RATE_FACTORS),
    "drop_above": _DROP_ABOVE,
  }
  return study_file.tuned(study, tuning, "the pilot")


def most_runs(study: study_file.Study) -> int:
  """Returns how many runs there are if no arm is dropped."""
  assert study.tuning is not None
  arms, seeds = len(study.tuning.arms), len(study.tuning.seeds)
  return arms * (len(_RATE_FACTORS) + seeds - 1)


def sharing_arms(study: study_file.Study) -> list[str]:
  assert study.tuning is not None
  tuning = study.tuning
  others = {BASELINE, EQUAL_INIT, *tuning.controls.values(), *tuning.kept}
  return [arm for arm in tuning.arms if arm not in others]


def _arms(
  config: cfg.ExperimentConfig, pilot_steps: int
) -> dict[str, dict[str, Any]]:
  """Returns the overrides of each arm for an experiment that shares nothing."""
  sharing, steps = config.task.sharing, config.trainer.train_steps
  unit = {"unit_size": sharing.unit_size}
  swe = {"mode": catalog.SWE, **unit}
  if sharing.mode == catalog.SWE:
    swe["untie_fraction"] = catalog.tau_of(sharing, steps) / steps
  arms: dict[str, dict[str, Any]] = {
    BASELINE: {"mode": catalog.NONE},
    EQUAL_INIT: {"mode": EQUAL_INIT, **unit},
    SWE: swe,
  }
  encoder = encoders.encoder_of(config.task.as_dict())
  if encoder is not None and encoder.is_bert:
    fields = config_lib.RECIPES[RECIPE](encoder.num_layers or 1)
    arms[RECIPE] = {"mode": catalog.SWE, **fields}
  # The plan's settings beyond Algorithm 1, if any. Whatever counts steps keeps
  # its fraction of the run: in a shorter one the same step would be another.
  ours, plain = sharing.as_dict(), config_lib.SharingConfig().as_dict()
  known = ("untie_fraction", "untie_step", "unit_size", "recipe", "bindings")
  extra = {
    name: value
    for name, value in ours.items()
    if value != plain[name] and name not in known
  }
  shares = sharing.mode not in (catalog.NONE, EQUAL_INIT)
  if shares and extra and sharing.recipe != RECIPE:
    for stage in (*extra.get("loops", ()), *extra.get("stages", ())):
      for name in ("until", "from"):
        step = stage.pop(f"{name}_step", None)
        if step is not None:
          stage[f"{name}_fraction"] = step / steps
    if ours["check_interval"] and extra.keys() & {"check_interval", "rule"}:
      interval = round(ours["check_interval"] * pilot_steps / steps)
      extra["check_interval"] = max(1, interval)
    tau = catalog.tau_of(sharing, steps) / steps
    planned = {"mode": sharing.mode, **unit, "untie_fraction": tau, **extra}
    if planned not in arms.values():
      arms[PLANNED] = planned
  made = {arm: {"task": {"sharing": fields}} for arm, fields in arms.items()}
  few = (encoder.num_layers or 0) // 4 if encoder is not None else 0
  if encoder is not None and few:
    shallow = encoder.overrides(num_layers=few)
    none = {"sharing": {"mode": catalog.NONE}}
    made[f"layers{few}"] = {"task": {**none, **shallow}}
  return made


def _cut_down(config: cfg.ExperimentConfig, steps: int) -> dict[str, Any]:
  """Returns the plan with fewer steps, and without sharing."""
  planned = config.trainer.train_steps
  if not _VALIDATIONS <= steps <= planned:
    raise errors.UsageError(
      f"a pilot of {steps} steps: it must have at least {_VALIDATIONS}, and "
      f"no more than the planned run ({planned})."
    )
  overrides = config.as_dict()
  overrides["task"]["sharing"] = config_lib.SharingConfig().as_dict()
  if "growth" in overrides["task"]:
    overrides["task"]["growth"] = config_lib.GrowthConfig().as_dict()
  loop = steps // _VALIDATIONS
  trainer = overrides["trainer"]
  trainer |= {
    "train_steps": loop * _VALIDATIONS,
    "steps_per_loop": loop,
    "summary_interval": loop,
    "validation_interval": loop,
    "checkpoint_interval": loop * (_VALIDATIONS // 4),
    "max_to_keep": 1,
  }
  optimizer = trainer["optimizer_config"]
  optimizer["learning_rate"]["polynomial"] |= {"decay_steps": None, "offset": 0}
  for kind in ("linear", "polynomial"):
    warmup = (optimizer.get("warmup") or {}).get(kind)
    if warmup and warmup.get("warmup_steps"):
      part = warmup["warmup_steps"] / planned
      warmup["warmup_steps"] = max(1, round(part * steps))
  return overrides


def time_step(
  experiment: str, overrides: Mapping[str, Any], cores: Sequence[int] = ()
) -> dict[str, float]:
  """Times the cut-down baseline on some cores, in a process of its own.

  Returns `start`, the seconds until the first step is done, and `step`.
  """
  if cores:
    os.sched_setaffinity(0, cores)
  begin = time.monotonic()
  config = experiments.get(experiment, overrides)
  with tempfile.TemporaryDirectory() as model_dir:
    trainer = runner_lib.make_runner(config, model_dir).trainer
    trainer.train(tf.constant(1))
    start = time.monotonic() - begin
    steps, spent = 5, 0.0
    while spent < 2.0:
      steps *= 2
      begin = time.monotonic()
      trainer.train(tf.constant(steps))
      spent = time.monotonic() - begin
    return {"start": start, "step": spent / steps}


def fit(
  timing: dict[str, float], seconds: float, runs: int, jobs: int, planned: int
) -> int:
  """Returns how many steps of each run fit into a time; see `time_step`."""
  # A run that starts shared compiles twice, and validation takes time too.
  each = seconds * jobs / runs - 2.0 * timing["start"]
  steps = int(each / (1.4 * timing["step"]))
  if steps < _VALIDATIONS:
    least = (2.0 * timing["start"] + 28.0 * timing["step"]) * runs / jobs
    raise errors.UsageError(
      f"{runs} runs do not fit in {seconds / 3600:.2g} hours: each takes "
      f"{timing['start']:.0f} s to start. Give at least {least / 3600:.2g} "
      "hours, or let more jobs run at once."
    )
  return min(steps, planned) // _VALIDATIONS * _VALIDATIONS


def flops(study: study_file.Study, configs: dict[str, Any]) -> float:
  """Returns the most FLOPs that a pilot can take, without repeated rates."""
  each = [cost.training_flops(configs[run.name]) for run in study.runs]
  return sum(each) * most_runs(study) / max(1, len(each))
