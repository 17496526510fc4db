"""Runs `swe demo`: the study of `study.yaml`, and a page of what it shows.

It is trained on the docstrings of the installed packages.
"""

import dataclasses
import os
import pathlib

from rich import console as rich_console

from official.core import exp_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import parsing
from swe_tf.data.text import docstrings
from swe_tf.methods import catalog
from swe_tf.modeling import registry as encoders
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies.demo import page

_STUDY = pathlib.Path(__file__).with_name("study.yaml")
_JOB = "swe_tf.studies.jobs:demo"


def make_study(
  corpus: docstrings.CorpusPaths | None, params_override: str | None
) -> study_file.Study:
  """Returns the demo as a study of two arms, or of one if it shares nothing.

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
  config = parsing.apply_overrides(config, params_override)
  study = dataclasses.replace(study, overrides=config.as_dict())
  if config.task.sharing.mode == catalog.NONE:
    study = study.without_runs({page.BASELINE})
  return study


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo, resumes it, or shows a finished one again."""
  sweep.leave_gpus_to_runs()
  without_data = make_study(None, params_override)
  experiments.make_configs(without_data, has_data=False)
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  console.print("reading the docstrings of the installed packages ...")
  corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  study = make_study(corpus, params_override)
  configs = experiments.make_configs(study)
  executor = executors.Local(len(study.runs))
  runs, failures = sweep.run_study(
    study, configs, output_dir, executor, console, function=_JOB
  )
  for name, error in failures.items():
    raise errors.Failed(f"{name}: {error}")
  arms = {each.name: page.read_arm(each) for each in runs}
  content = files.read_json(files.as_path(output_dir) / "study.json")
  path = os.path.join(output_dir, "index.html")
  entropy = content["unigram_entropy"]
  files.write_text(path, page.make(arms, entropy, output_dir, params_override))
  for name, arm in arms.items():
    console.print(
      f"{name}: {arm.result['seconds']:.0f} s, "
      f"{arm.result['cpu_seconds']:.0f} s of CPU time"
    )
  console.print(page.verdict(arms))
  console.print(f"page: {path}")
