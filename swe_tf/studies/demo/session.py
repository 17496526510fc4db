"""`swe demo`: the study of `study.yaml`, and a page of what its runs show.

It is trained on the docstrings of the installed packages. The page is one
self-contained HTML file, from `analysis/templates/demo.html.jinja`. Everything
in it that comes from the user, a directory or an override, is escaped.
"""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import os
import pathlib
import shlex
from typing import Any

import numpy as np
from rich import console as rich_console

from official.core import exp_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures
from swe_tf.analysis import pages
from swe_tf.analysis import scalars
from swe_tf.analysis import statistics
from swe_tf.configs import cost as cost_lib
from swe_tf.configs import parsing
from swe_tf.data.text import docstrings
from swe_tf.methods import catalog
from swe_tf.modeling import registry as encoders
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep

_STUDY = pathlib.Path(__file__).with_name("study.yaml")
TITLE = "Sharing weights, then unsharing: the demo"
# docs/finetuning.md starts from the checkpoint in the directory MODEL.
MODEL, BASELINE, SHALLOW = "model", "baseline", "shallow"


def make_study(
  corpus: docstrings.CorpusPaths | None, params_override: str | None
) -> study_file.Study:
  """Returns the demo as a study of three arms, or of one if it shares nothing.

  There is no corpus yet when only `params_override` is checked.
  """
  study = study_file.read_study(str(_STUDY))
  config = exp_factory.get_exp_config(study.experiment)
  config.override(study.overrides, is_strict=True)
  if corpus is not None:
    words = files.read_text(corpus.vocab).splitlines()
    encoder = encoders.require_encoder(config.task.as_dict())
    task = dict(encoder.overrides(vocab_size=len(words)))
    for name in ("train", "validation"):
      path = {"input_path": getattr(corpus, name)}
      task[f"{name}_data"] = path | {"vocab_file_path": corpus.vocab}
    config.override({"task": task}, is_strict=True)
  # Before the arms: the baseline shares nothing, whatever is overridden.
  before = _rate_and_sharing(config)
  config = parsing.apply_overrides(config, params_override)
  study = dataclasses.replace(study, overrides=config.as_dict())
  if _rate_and_sharing(config) != before:
    # The rate of the model is the best one of SWE as printed only.
    runs = [
      dataclasses.replace(run, own=()) if run.name == MODEL else run
      for run in study.runs
    ]
    study = dataclasses.replace(study, runs=runs)
  if config.task.sharing.mode == catalog.NONE:
    study = study.without_runs({BASELINE, SHALLOW})
  return study


def _rate_and_sharing(config: Any) -> tuple[dict[str, Any], ...]:
  rate = config.trainer.optimizer_config.learning_rate
  return rate.as_dict(), config.task.sharing.as_dict()


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo, resumes it, or shows a finished one again."""
  sweep.leave_gpus_to_runs()
  without_data = make_study(None, params_override)
  experiments.make_configs(without_data, has_data=False)
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  with messages.during("reading the docstrings of the installed packages"):
    corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  study = make_study(corpus, params_override)
  configs = experiments.make_configs(study)
  # As many at a time as there are cores; the long ones come first.
  executor = executors.Local(min(len(study.runs), os.cpu_count() or 1))
  runs, failures = sweep.run_study(
    study, configs, output_dir, executor, console
  )
  for name, error in failures.items():
    raise errors.Failed(f"{name}: {error}")
  arms = {each.name: read_arm(each) for each in runs}
  content = files.read_json(files.as_path(output_dir) / "study.json")
  path = os.path.join(output_dir, "index.html")
  entropy = content["unigram_entropy"]
  files.write_text(path, make_page(arms, entropy, output_dir, params_override))
  for name, arm in arms.items():
    console.print(
      f"{name}: final loss {arm.loss:.3f}, {arm.steps:,} steps, "
      f"{arm.flops:.2e} FLOPs, {arm.result['seconds']:.0f} s, "
      f"{arm.result['cpu_seconds']:.0f} s of CPU time"
    )
  console.print(verdict(arms))
  console.print(f"page: {path}")
  out = {"format": "savedmodel", "output_dir": "exported"}
  checkpoint = os.path.join(output_dir, MODEL)
  messages.say_next("swe export", checkpoint=checkpoint, **out)


class DemoArm:
  """A finished run: its `result.json`, its curves, its size, its cost.

  `phases` has, in order, the steps of each phase and the FLOPs of a step in it.
  """

  def __init__(self, result: Any, curves: Any, task: Any, phases: Any):
    self.result, self.curves, self.phases = result, curves, phases
    self.steps = result["steps"]
    self.flops = comparisons.flops_until(self, 1.0)
    self.layers = encoders.require_encoder(task.as_dict()).num_layers
    data = task.train_data
    self.tokens_per_step = data.global_batch_size * data.seq_length
    self.loss = result["metrics"]["validation_loss"]
    tau = curves.get("train/sharing/untie_step")
    self.untie_step = int(tau[-1][1]) if tau else None  # It never shares.


def read_arm(run: executors.SweepRun) -> DemoArm:
  result = run.directory.read_result()
  curves = scalars.read_run(run.directory.path, run.config.trainer.as_dict())
  steps = run.config.trainer.train_steps
  phases = [(steps, run.cost / steps)]
  with contextlib.suppress(errors.UsageError):  # A rule without a known tau.
    found = cost_lib.estimate(run.config).phases.values()
    phases = [(phase.steps, phase.flops_per_step) for phase in found]
  return DemoArm(result, curves, run.config.task, phases)


def verdict(arms: Mapping[str, DemoArm]) -> str:
  """Returns the outcome in one sentence."""
  model, baseline = arms[MODEL], arms.get(BASELINE)
  steps = f"{model.steps:,} steps"
  if baseline is None:
    return (
      f"Nothing was shared, so there is nothing to compare: after {steps} the "
      f"model ended at {model.loss:.3f} nats per token."
    )
  ratio = model.flops / baseline.flops
  spent = ""
  if abs(ratio - 1) >= statistics.SAME_COST:
    spent = f", for {ratio:.2f} of the baseline's FLOPs,"
  told = (
    f"After the same {steps} the shared model ended at {model.loss:.3f} nats "
    f"per token{spent} and the baseline at {baseline.loss:.3f}, a difference "
    f"of {model.loss - baseline.loss:+.3f}: one seed {statistics.CANNOT_TELL} "
    "whether sharing pays; docs/map.md has more of them."
  )
  curve = baseline.curves["validation/validation_loss"]
  if reached := comparisons.steps_until(curve, model.loss):
    told += (
      f" The baseline was at {model.loss:.3f} after "
      f"{reached / baseline.steps:.2f} of its steps and FLOPs."
    )
  if shallow := arms.get(SHALLOW):
    told += (
      f" {shallow.layers} layers, for {shallow.flops / baseline.flops:.2f} of "
      f"the baseline's FLOPs, ended at {shallow.loss:.3f}."
    )
  return told


def make_page(
  arms: Mapping[str, DemoArm],
  entropy: float,
  output_dir: str,
  params_override: str | None,
) -> str:
  """Returns the page."""
  model = arms[MODEL]
  titles = {
    MODEL: "shared, then untied" if model.untie_step else MODEL,
    BASELINE: "never shared (baseline)",
  }
  named = {
    titles.get(name, f"{arm.layers} layers"): arm for name, arm in arms.items()
  }
  losses, flops, *layers = _figures(named, model, entropy)
  return pages.render(
    "demo.html.jinja",
    title=TITLE,
    verdict=verdict(arms),
    arms=named,
    model=model,
    params_override=params_override,
    curves=[flops, losses],
    layers=layers,
    here=shlex.quote(output_dir),
    other=shlex.quote(f"{output_dir.rstrip('/')}_units"),
  )


def _figures(
  arms: Mapping[str, DemoArm], model: DemoArm, entropy: float
) -> list[figures.Figure]:
  """Draws the losses and the layers, each narrow enough for a phone."""
  found, tau = [], model.untie_step

  def draw(
    y: str,
    lines: Sequence[tuple[Any, dict[str, Any]]],
    caption: str,
    x: str = "training step",
    top: float | None = None,
  ):
    drawing, panel = figures.new_panel()
    for curve, look in lines:
      panel.plot(*zip(*curve), **look)
    if tau and x == "training step":
      label = f"untied after step {tau:,}"
      panel.axvline(tau, color="black", linestyle="--", lw=1, label=label)
    panel.legend(fontsize=10)
    panel.set_xlim(left=0)
    panel.set_ylim(top=top)
    figures.finish(panel, x, y)
    found.append(figures.save(drawing, f"{y} by {x}", caption))

  ends = [(0, entropy), (model.steps, entropy)]
  dotted = {"color": "gray", "linestyle": ":"}
  lines: list[Any] = [
    (ends, dotted | {"label": "entropy of single characters"})
  ]
  # In the order of `arms`; the baseline is black here as everywhere.
  colours = (figures.BLUE, figures.BLACK, figures.ORANGE)
  by_flops: list[Any] = []
  for (name, arm), colour in zip(arms.items(), colours):
    thick = {"color": colour, "linewidth": 2, "label": name}
    curve = arm.curves["validation/validation_loss"]
    lines.append((curve, thick))
    thin = {"color": colour, "linewidth": 0.8, "alpha": 0.35}
    lines.append((arm.curves["train/training_loss"], thin))
    steps, losses = zip(*curve)
    spent = comparisons.flops_until(arm, np.array(steps) / arm.steps)
    by_flops.append((zip(spent, losses), thick))
  draw(
    "loss (nats per token)",
    lines,
    "Validation loss (thick) and training loss (thin). A model above the "
    "dotted line does worse than one that only knows how frequent each "
    "character is.",
    top=1.05 * entropy,
  )
  draw(
    "validation loss (nats per token)",
    by_flops,
    "Validation losses by what they cost: the FLOPs of the matrix "
    "products so far. The learning rates decay to 0 at the end of each run, so "
    "compare the ends.",
    x=figures.FLOPS,
  )
  blue = {"color": figures.BLUE, "linewidth": 2}
  if cosines := model.curves.get("train/sharing/gradient_cosine"):
    draw(
      "cosine between gradients",
      [(cosines, blue)],
      "The mean cosine between the gradients of two layers while they share "
      "weights: at 1 all layers want the same update.",
    )
  if tau and (drift := model.curves.get("train/sharing/distance_from_mean")):
    draw(
      "distance from the mean layer",
      [([(tau, 0.0), *drift], blue)],
      "How far the layers are from their mean, relative to its norm: 0 while "
      "they are shared.",
    )
  return found
