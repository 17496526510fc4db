"""Runs `swe demo` from the text to the page, and times each part."""

from collections.abc import Iterator, Mapping
import contextlib
import os
import time
from typing import Any

from rich import console as rich_console

from swe_tf import files
from swe_tf.data.text import docstrings
from swe_tf.methods import catalog
from swe_tf.studies import launcher
from swe_tf.studies import sweep as sweep_lib
from swe_tf.studies.demo import experiment
from swe_tf.studies.demo import page
from swe_tf.studies.demo import story as story_lib

# docs/finetuning.md starts from the checkpoint in the directory MODEL.
MODEL, BASELINE = "model", "baseline"
_PAGE = "index.html"


def _make_sweep(
  corpus: docstrings.CorpusPaths,
  params_override: str | None,
  shares: bool,
  output_dir: str,
) -> sweep_lib.Sweep:
  """Returns the two runs, or just one if the model shares nothing either."""
  runs = [
    sweep_lib.Run(
      name=name,
      function="swe_tf.studies.demo.jobs:train",
      arguments={
        "corpus": list(corpus),
        "params_override": params_override,
        "is_baseline": name == BASELINE,
      },
      config={"params_override": params_override, "run": name},
    )
    for name in ((MODEL, BASELINE) if shares else (MODEL,))
  ]
  return sweep_lib.Sweep(runs, output_dir)


def run(output_dir: str, params_override: str | None = None) -> None:
  """Runs the demo, resumes it, or shows a finished one again.

  Args:
    output_dir: Directory for the corpus, the runs and the page.
    params_override: As for `swe train`; applies to both runs.
  """
  files.check_output_dir(output_dir, "output_dir")
  values = experiment.check(params_override)
  shares = values["task"]["sharing"]["mode"] != catalog.NONE
  console = rich_console.Console()
  seconds: dict[str, float] = {}
  with _timed(seconds, "text"):
    _say(console, "reading the docstrings of the installed packages ...")
    corpus = docstrings.write_corpus(os.path.join(output_dir, "corpus"))
  sweep = _make_sweep(corpus, params_override, shares, output_dir)
  with _timed(seconds, "training"):
    _say(console, "starting TensorFlow and Model Garden ...")
    uses = (output_dir, params_override)
    jobs = 1 if files.uses_private_memory(uses) else len(sweep.runs)
    with (
      launcher.workers(jobs, uses=uses) as workers,
      sweep.progress(console, _summarize) as progress,
    ):
      failures = sweep.execute(workers, progress)
    for error in failures.values():
      raise error
  with _timed(seconds, "page"):
    results = sweep.results()
    arms = {
      name: story_lib.Arm.read(str(sweep.directory(name).path), result)
      for name, result in results.items()
    }
    story = story_lib.Story(arms[MODEL], arms.get(BASELINE))
    path = os.path.join(output_dir, _PAGE)
    files.write_text(path, page.make(story, output_dir, params_override))
  _show_times(console, seconds, results)
  _say(console, story.verdict())
  if story.baseline is not None:
    _say(console, story.steps_text())
  _say(console, f"page: {path}")


def _summarize(result: Mapping[str, Any]) -> str:
  return f"loss {result['validation_loss']:.3f}"


@contextlib.contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
  start = time.monotonic()
  yield
  seconds[part] = time.monotonic() - start


def _show_times(
  console,
  seconds: Mapping[str, float],
  results: Mapping[str, Mapping[str, Any]],
) -> None:
  """Prints how long each part took; a run's time covers all its attempts."""
  runs = "; ".join(
    f"{name} {result['seconds']:.0f} s, {result['cpu_seconds']:.0f} s of CPU "
    "time"
    for name, result in results.items()
  )
  for part, spent in seconds.items():
    note = f"  ({runs})" if part == "training" else ""
    _say(console, f"{part:<10}{spent:>6.1f} s{note}")
  _say(console, f"{'together':<10}{sum(seconds.values()):>6.1f} s")


def _say(console, text: str) -> None:
  console.print(text, soft_wrap=True, highlight=False, markup=False)
