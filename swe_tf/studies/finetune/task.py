"""The fine-tuning of one task: a study over learning rates and seeds.

DIR/study.json      what the runs have in common; see `sweep`
DIR/lr*-seed*/      a run; see `directory`. The selected one gets a
                    `test_result.json` once it has predicted
DIR/table.txt       what was printed
DIR/selection.json  what was selected
"""

import dataclasses
from typing import Any

import tf_keras

from official.core import exp_factory
from official.core import task_factory
from swe_tf import errors
from swe_tf import files
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import finetuning
from swe_tf.studies import directory as directory_lib
from swe_tf.studies import execution
from swe_tf.studies import executors
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.studies import sweep
from swe_tf.studies import worker
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import table as table_lib

JOBS = "swe_tf.studies.finetune.jobs"


class FineTuning:
  """The runs of one task in their directory.

  Attributes:
    plan: What is run.
    checkpoint: The checkpoint that is fine-tuned.
    runs: The runs.
    has_selected: Whether `run` has selected a run.
  """

  def __init__(self, plan: protocol.Plan):
    """Makes and checks the runs; writes nothing.

    Raises:
      UsageError: If data, checkpoint and settings do not go together, or the
        directory holds runs with other settings.
    """
    self.plan = plan
    self.checkpoint = _earlier_checkpoint(plan) or plan.settings.checkpoint
    self.has_selected = False
    self._metric = protocol.selecting_metric(plan.data)
    self._output_dir = files.as_path(plan.output_dir)
    self._study = self._make_study()
    configs = experiments.make_configs(
      self._study, plan.settings.params_override
    )
    self.runs = sweep.make_runs(
      self._study, configs, plan.output_dir, f"{JOBS}:train"
    )
    if len(execution.results_of(self.runs)) < len(self.runs):
      # Whether the weights fit, before anything is written.
      task = task_factory.get_task(self.runs[0].config.task)
      task.initialize(task.build_model())
      tf_keras.backend.clear_session()

  def _make_study(self) -> study_file.Study:
    settings, data = self.plan.settings, self.plan.data
    source = finetuning.find_encoder(self.checkpoint)
    finetuning.check_vocabulary(source, data)
    self.checkpoint = source.checkpoint
    experiment = "swe/squad" if data.is_squad else "swe/glue"
    config = exp_factory.get_exp_config(experiment)
    config.task.model.encoder = source.encoder.config
    is_random = settings.init == protocol.RANDOM
    config.override(
      {
        "task": {
          "data_dir": str(data.directory),
          "init_checkpoint": "" if is_random else source.checkpoint,
          "epochs": settings.epochs,
          "max_train_examples": settings.max_train_examples,
        }
      }
    )
    return study_file.Study(
      experiment=experiment,
      config_files=(),
      overrides=config.as_dict(),
      metrics=(self._metric,),
      runs=self.plan.runs,
    )

  def run(self, executor: executors.Executor, console) -> bool:
    """Trains the runs without a result, selects one, predicts the test sets.

    Prints the table, and writes `table.txt` and `selection.json`.

    Args:
      executor: Where the runs are executed.
      console: Where to print.

    Returns:
      Whether everything succeeded.
    """
    plan, metric = self.plan, self._metric
    sweep.write_study(
      self._study,
      plan.output_dir,
      settings=dataclasses.asdict(plan.settings),
      checkpoint=self.checkpoint,
    )
    failures = execution.execute(
      self.runs,
      executor,
      console,
      lambda result: table_lib.summarize(result, metric),
    )
    frame = table_lib.make_frame(
      plan.runs, execution.results_of(self.runs), failures
    )
    best = table_lib.choose(frame, metric)
    succeeded = not failures
    if best and (plan.data.splits_of("test") or plan.ax_data_dir):
      succeeded &= self._predict(best, executor, console)
    title = (
      f"{plan.data.task}, {plan.settings.init} weights, "
      f"{plan.settings.epochs:g} epochs"
    )
    table = table_lib.render(frame, best, plan.data.task, metric, title)
    console.print(table)
    if best is None:
      return False
    folder = self._output_dir
    files.write_text(folder / "table.txt", table_lib.as_text(table))
    files.write_json(
      folder / "selection.json",
      table_lib.selection(frame, best, plan.data.task, metric),
    )
    self.has_selected = True
    console.print(f"selected {folder / best}", soft_wrap=True)
    return succeeded

  def _predict(self, name: str, executor: executors.Executor, console) -> bool:
    """Predicts the test sets with a finished run, unless it has already."""
    path = self._output_dir / name / "test_result.json"
    content: dict[str, Any] = files.read_json(path) if path.exists() else {}
    if content.get("ax_data_dir") != self.plan.ax_data_dir:
      console.print(f"{name}: predicting the test set ...")
      (run,) = (run for run in self.runs if run.name == name)
      call: worker.Call = dataclasses.replace(
        run.call,
        function=f"{JOBS}:predict",
        arguments={"ax_data_dir": self.plan.ax_data_dir},
      )
      for _, error in executor.run({name: call}, lambda: None):
        if error:
          console.print(f"{name}: no predictions: {error}", soft_wrap=True)
          return False
      content = files.read_json(path)
    for split, scores in content["scores"].items():
      shown = (f"{n} {table_lib.show_score(v)}" for n, v in scores.items())
      console.print(f"{name}: {split} {', '.join(shown)}", soft_wrap=True)
    return True


def _earlier_checkpoint(plan: protocol.Plan) -> str:
  """Returns the checkpoint that an earlier call took; '' if there was none.

  The latest checkpoint of a directory may change between two calls.
  """
  path = files.as_path(plan.output_dir) / "study.json"
  if not path.exists():
    return ""
  earlier = files.read_json(path)
  if not isinstance(earlier, dict) or not {"settings", "checkpoint"} <= set(
    earlier
  ):
    raise errors.UsageError(
      f"{path} was not written by `swe finetune` (it lacks settings or a "
      "checkpoint); choose another output_dir."
    )
  directory_lib.refuse_other(
    path, earlier["settings"], dataclasses.asdict(plan.settings)
  )
  return str(earlier["checkpoint"])
