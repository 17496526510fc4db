"""The fine-tuning of one task: a study over learning rates and seeds.

DIR/study.json      what the runs have in common; see `sweep`
DIR/lr*-seed*/      a run; see `worker`. The selected one gets a
                    `test_result.json` once it has predicted, and is the only
                    one that keeps its checkpoint
DIR/table.txt       what was printed
DIR/selection.json  what was selected
"""

from collections.abc import Iterable, Mapping
import dataclasses
import math
from typing import Any

import tf_keras

from official.core import exp_factory
from official.core import task_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import finetuning
from swe_tf.data.prepare import manifest
from swe_tf.modeling import checkpoint_files
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies import worker
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib

TRAIN = "swe_tf.studies.jobs:finetune"
PREDICT = "swe_tf.studies.jobs:predict"


class FineTuning:
  """The runs of one task in their directory; `checkpoint` is fine-tuned."""

  def __init__(self, plan: protocol.Plan):
    """Makes and checks the runs; writes nothing."""
    self.plan, self.has_selected = plan, False
    self._metric = protocol.selecting_metric(plan.data)
    self._output_dir = files.as_path(plan.output_dir)
    settings, data = plan.settings, plan.data
    self._fingerprints = {str(data.directory): data.fingerprint}
    if plan.ax_data_dir:
      ax_data = manifest.read(plan.ax_data_dir)
      self._fingerprints[plan.ax_data_dir] = ax_data.fingerprint
    source = checkpoint_files.find_encoder(
      self._earlier_checkpoint() or settings.checkpoint
    )
    finetuning.check_vocabulary(source, data)
    self.checkpoint = source.checkpoint
    experiment = "swe/squad" if data.is_squad else "swe/glue"
    config = exp_factory.get_exp_config(experiment)
    config.task.model.encoder = source.encoder.config
    is_random = settings.init == protocol.RANDOM
    task_fields = {
      "data_dir": str(data.directory),
      "init_checkpoint": "" if is_random else source.checkpoint,
      "epochs": settings.epochs,
      "max_train_examples": settings.max_train_examples,
    }
    config.override({"task": task_fields})
    self._study = study_file.Study(
      experiment, (), config.as_dict(), (self._metric,), plan.runs
    )
    configs = experiments.make_configs(self._study, settings.params_override)
    self.runs = sweep.make_runs(self._study, configs, plan.output_dir, TRAIN)
    if len(executors.results_of(self.runs)) < len(self.runs):
      # Whether the weights fit, before anything is written.
      task = task_factory.get_task(self.runs[0].config.task)
      task.initialize(task.build_model())
      tf_keras.backend.clear_session()

  def _earlier_checkpoint(self) -> str:
    """Returns the checkpoint that an earlier call took; '' if there was none.

    The latest checkpoint of a directory may change between two calls.
    """
    path = self._output_dir / "study.json"
    if not path.exists():
      return ""
    earlier = files.read_object(path, settings=dict, checkpoint=str, data=dict)
    now = dataclasses.asdict(self.plan.settings)
    worker.refuse_other(path, earlier["settings"], now)
    for place, digest in self._fingerprints.items():
      if earlier["data"].get(place, digest) != digest:
        raise errors.UsageError(
          f"{place} was prepared anew since the runs in {path.parent} began; "
          "choose another output_dir."
        )
    return str(earlier["checkpoint"])

  def run(self, executor: executors.Executor, console) -> bool:
    """Trains, selects a run, predicts the test sets; whether all succeeded."""
    plan, task, metric = self.plan, self.plan.data.task, self._metric
    sweep.write_study(
      self._study,
      plan.output_dir,
      settings=dataclasses.asdict(plan.settings),
      checkpoint=self.checkpoint,
      data=self._fingerprints,
    )

    def summarize(result: Mapping[str, Any]) -> str:
      if result["status"] != "finished":
        return f"diverged: {result['reason']}"
      scores = next(iter(result["scores"].values()))
      return f"{metric} {table_lib.show_score(scores[metric])}"

    failures = executors.execute(
      self.runs, executor, console, summarize, self._prune
    )
    results = executors.results_of(self.runs)
    frame = table_lib.make_frame(plan.runs, results, failures)
    best = table_lib.choose(frame, metric)
    succeeded = not failures
    if best and (plan.data.splits_of("test") or plan.ax_data_dir):
      succeeded &= self._predict(best, executor, console)
    settings = plan.settings
    title = f"{task}, {settings.init} weights, {settings.epochs:g} epochs"
    table = table_lib.render(frame, best, task, metric, title)
    console.print(table)
    if best is None:
      return False
    folder = self._output_dir
    files.write_text(folder / "table.txt", table_lib.as_text(table))
    selection = table_lib.selection(frame, best, task, metric)
    files.write_json(folder / "selection.json", selection)
    self.has_selected = True
    if succeeded:  # Otherwise the same command may choose another run.
      self._drop_checkpoints(run for run in self.runs if run.name != best)
    console.print(f"selected {folder / best}", soft_wrap=True)
    out = {"format": "savedmodel", "output_dir": "served"}
    messages.say_next("swe export", checkpoint=folder / best, **out)
    return succeeded

  def _prune(self) -> None:
    """Of the finished runs of each rate, leaves the best its checkpoint."""
    results, metric = executors.results_of(self.runs), self._metric

    def score(run: executors.SweepRun) -> float:
      result = results[run.name]
      if result["status"] != "finished":
        return -math.inf
      value = next(iter(result["scores"].values()))[metric]
      return -math.inf if value is None else value

    rates: dict[float, list[executors.SweepRun]] = {}
    for run in self.runs:
      if run.name in results:
        rates.setdefault(run.about["axes"]["learning_rate"], []).append(run)
    for finished in rates.values():
      best = max(finished, key=score)  # The first of equals, as `choose`.
      self._drop_checkpoints(run for run in finished if run is not best)

  def _drop_checkpoints(self, runs: Iterable[executors.SweepRun]) -> None:
    for run in runs:
      for path in run.directory.path.iterdir():
        if path.name == "checkpoint" or path.name.startswith("ckpt-"):
          path.unlink()

  def _predict(self, name: str, executor: executors.Executor, console) -> bool:
    """Predicts the test sets with a finished run, unless it has already."""
    path = self._output_dir / name / "test_result.json"
    content = files.read_object(path, missing_ok=True)
    arguments = {"ax_data_dir": self.plan.ax_data_dir}
    if content.get("ax_data_dir") != self.plan.ax_data_dir:
      (run,) = (run for run in self.runs if run.name == name)
      if not (run.directory.path / "checkpoint").exists():
        raise errors.Failed(
          f"{name} is selected now, but its checkpoint was deleted when "
          f"another run was; delete {run.directory.path} to train it again."
        )
      run = dataclasses.replace(run, function=PREDICT, arguments=arguments)
      with messages.during(f"{name}: predicting the test set", console):
        ended = dict(executor.run([run], lambda: None))
      if error := ended.get(name):
        console.print(f"{name}: no predictions: {error}", soft_wrap=True)
        return False
      content = files.read_json(path)
    for split, scores in content["scores"].items():
      shown = (f"{n} {table_lib.show_score(v)}" for n, v in scores.items())
      console.print(f"{name}: {split} {', '.join(shown)}", soft_wrap=True)
    return True
