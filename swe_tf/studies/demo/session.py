"""Runs `swe demo`, from the text to the page."""

import os

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.data.text import docstrings
from swe_tf.studies import execution
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import sweep
from swe_tf.studies.demo import experiment
from swe_tf.studies.demo import page
from swe_tf.studies.demo import story as story_lib

_JOB = "swe_tf.studies.demo.jobs:train"


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo, resumes it, or shows a finished one again.

  Args:
    output_dir: Directory for the corpus, the runs and the page.
    params_override: As for `swe train`; applies to both runs.
  """
  sweep.leave_gpus_to_runs()
  experiments.make_configs(
    experiment.make_study(None, params_override), has_data=False
  )
  console = rich_console.Console(soft_wrap=True, highlight=False, markup=False)
  console.print("reading the docstrings of the installed packages ...")
  corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  study = experiment.make_study(corpus, params_override)
  runs, failures = sweep.run_study(
    study,
    experiments.make_configs(study),
    output_dir,
    executors.Local(len(study.runs)),
    console,
    function=_JOB,
  )
  for name, error in failures.items():
    raise errors.Failed(f"{name}: {error}")
  arms = {run.name: story_lib.Arm.read(run) for run in runs}
  study_file = files.read_json(files.as_path(output_dir) / "study.json")
  story = story_lib.Story(
    model=arms[experiment.MODEL],
    baseline=arms.get(experiment.BASELINE),
    entropy=study_file["unigram_entropy"],
  )
  path = os.path.join(output_dir, "index.html")
  files.write_text(path, page.make(story, output_dir, params_override))
  for name, result in execution.results_of(runs).items():
    console.print(
      f"{name}: {result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of "
      "CPU time"
    )
  console.print(story.verdict())
  if story.baseline is not None:
    console.print(story.steps_text())
  console.print(f"page: {path}")
