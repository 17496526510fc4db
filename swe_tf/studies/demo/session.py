"""`swe demo`: the study of `study.yaml`, and a page of what its runs show.

It is trained on the docstrings of the installed packages. The page is one
self-contained HTML file, from `analysis/templates/demo.html.jinja`. Everything
in it that comes from the user, a directory or an override, is escaped.
"""

import dataclasses
import os
import pathlib
import shlex
from typing import Any

import pandas as pd
from rich import console as rich_console

from official.core import exp_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.analysis import comparisons
from swe_tf.analysis import figures
from swe_tf.analysis import pages
from swe_tf.analysis import runs as runs_lib
from swe_tf.analysis import statistics
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
  _, failures = sweep.run_study(study, configs, output_dir, executor, console)
  for name, error in failures.items():
    raise errors.Failed(f"{name}: {error}")
  arms, curves = read_arms(output_dir)
  path = os.path.join(output_dir, "index.html")
  page = make_page(arms, curves, output_dir, params_override)
  files.write_text(path, page)
  for arm in arms.itertuples():
    console.print(
      f"{arm.Index}: final loss {arm.validation_loss:.3f}, "
      f"{arm.steps:,} steps, {arm.flops:.2e} FLOPs, {arm.seconds:.0f} s, "
      f"{arm.cpu_seconds:.0f} s of CPU time"
    )
  console.print(verdict(arms))
  console.print(f"page: {path}")
  out = {"format": "savedmodel", "output_dir": "exported"}
  checkpoint = os.path.join(output_dir, MODEL)
  messages.say_next("swe export", checkpoint=checkpoint, **out)


def read_arms(output_dir: files.PathLike) -> tuple[pd.DataFrame, pd.DataFrame]:
  """Returns the runs of a demo by their names, and their curves."""
  found, curves = runs_lib.read([output_dir])
  found.index = [path.name for path in found.path]
  found = found.loc[[n for n in (MODEL, BASELINE, SHALLOW) if n in found.index]]
  titles = {
    MODEL: "shared, then untied" if found.untie_step[MODEL] else MODEL,
    BASELINE: "never shared (baseline)",
  }
  layers = [size.num_layers for size in found.model_size]
  return (
    found.assign(
      arm=[titles.get(n, f"{k} layers") for n, k in zip(found.index, layers)],
      layers=layers,
      # Else it would look like the baseline.
      method=[n if n == SHALLOW else m for n, m in found.method.items()],
      setting=found.setting_title[MODEL],
      # Of one that diverged there is none.
      validation_loss=found.validation_loss.astype(float),
      mlm_accuracy=found.mlm_accuracy.astype(float),
    ),
    curves,
  )


def verdict(arms: pd.DataFrame) -> str:
  """Returns the outcome in a few sentences."""
  found: dict[str, Any] = dict(arms.iterrows())
  model, baseline = found[MODEL], found.get(BASELINE)
  has_own_cost, reached = False, None
  if baseline is not None:
    apart = abs(model.flops / baseline.flops - 1)
    has_own_cost = apart >= statistics.SAME_COST
    reached = comparisons.steps_until(baseline.curve, model.validation_loss)
  text = pages.render(
    "demo_verdict.jinja",
    **dict(model=model, baseline=baseline, shallow=found.get(SHALLOW)),
    **dict(has_own_cost=has_own_cost, reached=reached),
  )
  return " ".join(text.split())


def make_page(
  arms: pd.DataFrame,
  curves: pd.DataFrame,
  output_dir: str,
  params_override: str | None,
) -> str:
  model = arms.loc[MODEL]
  return pages.render(
    "demo.html.jinja",
    title=TITLE,
    verdict=verdict(arms),
    arms=list(arms.itertuples()),
    model=model,
    params_override=params_override,
    curves=figures.draw_losses("losses", arms, curves),
    layers=_draw_layers(model, curves[curves.run == model.run]),
    here=shlex.quote(output_dir),
    other=shlex.quote(f"{output_dir.rstrip('/')}_units"),
  )


def _draw_layers(model: Any, curves: pd.DataFrame) -> list[figures.Figure]:
  """Draws what the layers do while they are shared, and after it."""
  drawn = []
  for name, y, caption in (
    (
      "gradient_cosine",
      "cosine between gradients",
      "The mean cosine between the gradients of two layers while they share "
      "weights: at 1 all layers want the same update.",
    ),
    (
      "distance_from_mean",
      "distance from the mean layer",
      "How far the layers are from their mean, relative to its norm: 0 while "
      "they are shared.",
    ),
  ):
    found = curves[curves.curve == f"train/sharing/{name}"]
    if len(found):
      drawing, panel = figures.new_panel()
      panel.plot(found.step, found.value, color=figures.BLUE, linewidth=2)
      if model.untie_step:
        at = {"color": figures.BLUE, "linestyle": "--", "lw": 1}
        panel.axvline(model.untie_step, **at)
      panel.set_ylim(0.0, 1.05 * found.value.max())
      figures.finish(panel, "step", y)
      drawn.append(figures.save(drawing, name, caption))
  return drawn
