"""Runs as frames: one row per run, and all curves in a second, long frame.

A run is a directory with `params.yaml` and event files in `train/` and
`validation/`, as `swe train` and `swe sweep` write it. Everything else in a
report is computed from these two frames.

A setting is everything that two runs must have in common to be compared: model,
data, budget, optimizer. The rest of a config is the method, the peak learning
rate and the seed. `methods.catalog` tells methods apart, `modeling.registry`
encoders, `sameness` the fields that matter.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import math
import pathlib
import re
from typing import Any

import pandas as pd

from swe_tf import errors
from swe_tf import files
from swe_tf import sameness
from swe_tf import yaml_files
from swe_tf.analysis import scalars
from swe_tf.data.prepare import manifest
from swe_tf.methods import catalog
from swe_tf.modeling import registry
from swe_tf.modeling import sizes
from swe_tf.sharing import untie_step as untie_step_lib

FINISHED, UNFINISHED, DIVERGED = "finished", "unfinished", "diverged"
NOT_EVALUATED, REPEATED = "not evaluated", "repeated seed"
CHANGED = "changed on the way"  # What it ends with is no method's result.
# Columns of scores; fine-tuning adds those of the paper's rows.
LOSS, ACCURACY = "validation_loss", "mlm_accuracy"
# Fields that runs of one setting may differ in, besides the peak rate.
_NO_SETTING = (
  "task.seed",
  "task.train_data.seed",
  "task.sharing.",
  "task.growth.",
)
_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_RATE = re.compile(
  r"trainer\.optimizer_config\.learning_rate\.(.*\.)?(initial_)?learning_rate$"
)


def directories_with(
  roots: Sequence[files.PathLike], name: str
) -> Iterator[tuple[str, files.Path]]:
  """Yields the name for readers and the path of directories, each once."""
  seen = set()
  for root in map(files.as_path, roots):
    for path in sorted(at for at, _, names in root.walk() if name in names):
      if path.resolve() not in seen:
        seen.add(path.resolve())
        yield str(pathlib.PurePath(root.name) / path.relative_to(root)), path


def read(roots: Sequence[files.PathLike]) -> tuple[pd.DataFrame, pd.DataFrame]:
  """Reads all pre-training runs under some directories.

  Returns:
    The runs: `run`, the name for readers; `path`; `axes`, its place in a study;
    what `describe` and `_outcome` return.
    The curves: `run`, `curve`, such as `train/training_loss`, `step`, `value`.
  """
  rows: list[dict[str, Any]] = []
  points: list[tuple[str, str, int, float]] = []
  for name, path in directories_with(roots, "params.yaml"):
    content = yaml_files.read(path / "params.yaml")
    about = files.read_object(path / "run.json", missing_ok=True)
    axes = about.get("axes") or {}
    try:
      task = content.get("task", ())
      if "model" not in task or "data_dir" in task:
        continue  # Fine-tuning, or something else.
      row = describe(content, axes)
    except _FAULTS as error:  # It may hold anything.
      raise errors.UsageError(
        f"{path}/params.yaml: not the config of a run "
        f"({errors.first_line(error)}); correct it, or leave the run out."
      ) from error
    curves = scalars.read_run(path, content["trainer"])
    row = {"run": name, "path": path, "axes": axes} | row
    rows.append(row | _outcome(path, row, curves))
    for tag, curve in curves.items():
      points += [(name, tag, step, value) for step, value in curve]
  return (
    # As objects, so that a missing integer makes no floats of the others.
    pd.DataFrame(rows, dtype=object),
    pd.DataFrame(points, columns=["run", "curve", "step", "value"]),
  )


def _outcome(
  path: files.Path, row: dict[str, Any], curves: dict[str, scalars.Curve]
) -> dict[str, Any]:
  """Returns how far a run came, and what it measured."""
  result, study = (
    files.read_object(each, missing_ok=True)
    for each in (path / "result.json", path.parent / "study.json")
  )
  steps, phases, tau = row["steps"], row["phases"], row["untie_step"]
  step = max((curve[-1][0] for curve in curves.values() if curve), default=0)
  losses = curves.get("validation/validation_loss", [])
  accuracies = dict(curves.get("validation/masked_lm_accuracy", []))
  loss, accuracy = dict(losses).get(steps), accuracies.get(steps)
  # NaN may end a run at any step: it is a result, not an interruption.
  trained = curves.get("train/training_loss", [])
  ends = [each[-1][1] for each in (trained, losses) if each]
  if result.get("status") == DIVERGED or not all(map(math.isfinite, ends)):
    status = DIVERGED
  elif step < steps:
    status = UNFINISHED
  elif sameness.accepted(path):
    status = CHANGED
  else:
    status = NOT_EVALUATED if loss is None else FINISHED
  is_good = status == FINISHED
  measured = curves.get("train/sharing/untie_step")
  if tau is None and measured and row["method"] == catalog.SWE:
    tau = measured[-1][1]
  return {
    "step": step,
    "status": status,
    "untie_step": tau,
    "flops": phases and sum(count * flops for count, flops in phases),
    "seconds": _number(result.get("seconds")),
    "cpu_seconds": _number(result.get("cpu_seconds")),
    "entropy": _number(study.get("unigram_entropy")),
    "curve": losses,
    LOSS: loss if is_good else None,
    ACCURACY: 100 * accuracy if is_good and accuracy is not None else None,
  }


def _number(value: Any) -> float | None:
  return value if type(value) in (int, float) else None


def describe(
  content: Mapping[str, Any], axes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
  """Returns what a report knows about a run before it looks at its results.

  From its `params.yaml`, and the `axes` of its `run.json` if a study started
  it. `method` is its name in the catalog, `label` that for readers, `title` has
  unit and untie step too. `rule` says when it unties, or what departs from
  Algorithm 1, `is_fixed` that nothing does, `is_papers` that tau is the
  paper's. `variant` has the fields of the method, `setting` those that the runs
  of a comparison have in common, both flat. `phases` are the steps and the
  FLOPs per step of each phase. None stands for what is not known.
  """
  task = content["task"]
  data = task.get("train_data") or {}
  steps = int(content["trainer"]["train_steps"])
  encoder = registry.encoder_of(task)
  num_layers = encoder.num_layers if encoder else None
  size: sizes.Size | None = None
  with contextlib.suppress(errors.UsageError):  # Not a BERT.
    size = encoder.size if encoder else None
  resolved = catalog.read(task, steps, num_layers)
  setting = sameness.flatten(content)
  rates = [setting.pop(name) for name in list(setting) if _RATE.match(name)]
  batch, length = data.get("global_batch_size"), data.get("seq_length")
  paths = data.get("tfds_name") or data.get("input_path") or ""
  path = ",".join(paths) if isinstance(paths, list) else str(paths)
  width = size.hidden_size if size else None
  short = "/".join(pathlib.PurePath(path.split(",")[0]).parts[-2:])
  seeds = task.get("seed"), data.get("seed")
  vocabulary = encoder.vocab_size if encoder else None
  return {
    **_method(task, resolved, axes or {}),
    "steps": steps,
    "tokens": steps * batch * length if batch and length else None,
    "batch_size": batch,
    "seq_length": length,
    "vocab_size": vocabulary,
    "model_size": size,
    "data": path,
    "learning_rate": float(rates[0]) if rates else None,
    "seed": "/".join(str(s) for s in dict.fromkeys(seeds) if s is not None),
    "phases": size and _phases(resolved, size, data, vocabulary or 0),
    "setting": {
      name: value
      for name, value in setting.items()
      if sameness.defines_result(name) and not name.startswith(_NO_SETTING)
    },
    "setting_title": f"{num_layers} layers of width {width}, {steps:,} steps "
    f"of {batch} x {length} tokens of {short or 'unnamed data'}",
  }


def _method(
  task: Mapping[str, Any], resolved: catalog.Resolved, axes: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns the part of a row that describes the method."""
  sharing, growth = task.get("sharing") or {}, task.get("growth") or {}
  method, steps = catalog.find(resolved), resolved.train_steps
  name, rule = method.name, catalog.FIXED
  # Whether it is Algorithm 1 with any unit and any tau, 0 included.
  is_swe = name in (catalog.BASELINE, catalog.SWE, catalog.ALBERT)
  unit_size = resolved.num_layers if name == catalog.BASELINE else None
  if "units" not in method.ignores:
    unit_size = int(sharing.get("unit_size") or 1)
  tau = {catalog.BASELINE: 0, catalog.ALBERT: steps}.get(name)
  if "tau" not in method.ignores:
    rule = sharing.get("rule") or catalog.FIXED
    # Fields of the same name mean the same for every method.
    as_swe = {"sharing": sharing | {"mode": catalog.SWE}}
    tau = catalog.read(as_swe, steps, None).untie_step
  # What keeps arms apart.
  dropped = {"recipe", "unit_size"}
  if rule in catalog.rules():
    dropped |= {"untie_step", "untie_fraction"}
  own = {key: value for key, value in sharing.items() if key not in dropped}
  loops = [str(stage["loops"]) for stage in own.get("loops") or ()]
  if is_swe and name != catalog.BASELINE and loops:
    # Not Algorithm 1 as printed: no number of the paper compares with it. Only
    # the fixed rule has loops.
    rule = f"{'-'.join(loops)} loops"
  is_plain = is_swe or resolved.sharing.mode == catalog.NONE
  if rule == catalog.FIXED and is_plain:
    own = {"bindings": own.get("bindings")}
  if method.growth != catalog.NONE:
    own["growth"] = growth
  is_fixed = is_swe and name != catalog.BASELINE and rule == catalog.FIXED
  unit = None
  if unit_size and resolved.num_layers:
    unit = f"{unit_size}x{resolved.num_layers // unit_size}"
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
    "is_papers": is_fixed and tau == untie_step_lib.resolve_untie_step(steps),
    "variant": sameness.flatten(
      {"method": name, "unit_size": unit_size, "untie_step": tau} | own
    ),
  }


def _phases(
  resolved: catalog.Resolved,
  size: sizes.Size,
  data: Mapping[str, Any],
  vocabulary: int,
) -> tuple[tuple[int, int], ...] | None:
  """Returns the steps and the FLOPs per step of each phase, if known."""
  batch, length = data.get("global_batch_size"), data.get("seq_length")
  predictions, rate = (
    data.get(name) for name in ("max_predictions_per_seq", "masking_rate")
  )
  if not predictions and rate and length:
    predictions = manifest.max_predictions(length, rate)
  if not (batch and length and predictions):
    return None
  if resolved.untie_step is None and resolved.sharing.mode == catalog.SWE:
    # Such a rule applies all layers in every step, so any tau costs the same.
    phases = [(resolved.train_steps, size)]
  else:
    try:
      found = catalog.find(resolved).phases(resolved, size)
    except errors.UsageError:
      return None
    phases = [(phase.steps, phase.size) for phase in found]
  # What is no number, such as a list that was multiplied, ends here.
  cost = lambda each: int(
    sizes.training_flops(each, batch, length, predictions, vocabulary)
  )
  return tuple((int(steps), cost(each)) for steps, each in phases)
