r"""The `swe finetune` command: the paper's protocol on one task.

    swe finetune --task=SST-2 --checkpoint=RUN --data_dir=data/SST-2 \
      --output_dir=runs/glue/SST-2

Nine peak learning rates, for SQuAD five runs of each; the validation set
selects. Called again it goes on where it was. The best run of a GLUE task
predicts the test set, where `swe submission` finds it.
"""

from collections.abc import Sequence
import io
import os
import pathlib

from absl import flags
from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.data.prepare import prepared_data
from swe_tf.finetune import plan
from swe_tf.finetune import progress as progress_lib
from swe_tf.finetune import sweep as sweep_lib
from swe_tf.finetune import table as table_lib
from swe_tf.finetune import worker_process


def define_flags() -> None:
  """Defines the flags of the command."""
  flags.DEFINE_string(
    "task", None, "squad_v1.1, squad_v2.0, or a GLUE task such as SST-2."
  )
  flags.DEFINE_string(
    "checkpoint",
    None,
    "A checkpoint or a directory with one: of a "
    "pre-training run, or what `swe import` wrote. The architecture is taken "
    "from the params.yaml or encoder.yaml beside it.",
  )
  flags.DEFINE_string("data_dir", None, "What `swe prepare` wrote.")
  flags.DEFINE_string("output_dir", None, "Directory for the runs.")
  flags.DEFINE_list(
    "learning_rates", [], "Peak learning rates; by default the paper's nine."
  )
  flags.DEFINE_integer(
    "seeds",
    None,
    "Runs for each learning rate; by default 5 for SQuAD and "
    "1 for GLUE, as in the paper.",
    lower_bound=1,
  )
  flags.DEFINE_enum(
    "init",
    plan.CHECKPOINT,
    plan.INITS,
    "`random` starts from random "
    "weights: the same model without pre-training, to compare with.",
  )
  flags.DEFINE_float(
    "epochs", 3.0, "Passes over the training data.", lower_bound=0.0
  )
  flags.DEFINE_integer(
    "max_train_examples",
    0,
    "Train on the first so many records only; for "
    "SQuAD these are windows. 0 for all.",
    lower_bound=0,
  )
  flags.DEFINE_string(
    "ax_data_dir",
    "",
    "For MNLI: what `swe prepare glue --task=AX` wrote, "
    "to be answered by the best run.",
  )
  flags.DEFINE_string(
    "params_override",
    "",
    "Overrides of the experiment, as for swe train: "
    "task.train_data.global_batch_size=16, runtime.num_gpus=1, ...",
  )


def _learning_rates(values: Sequence[str]) -> list[float]:
  try:
    return [float(value) for value in values]
  except ValueError as error:
    raise errors.UsageError(f"--learning_rates: {error}.") from error


def _check_ax(data: prepared_data.PreparedData, ax_data_dir: str) -> None:
  """Raises `UsageError` unless AX can be answered by a model for `data`."""
  if not ax_data_dir:
    return
  ax_data = prepared_data.read_prepared_data(ax_data_dir)
  for task, holder in (("MNLI", data), ("AX", ax_data)):
    if holder.task != task:
      raise errors.UsageError(
        f"--ax_data_dir is for MNLI and AX, but {holder.directory} was "
        f"prepared for {holder.task}."
      )
  for key in ("vocab_sha256", "max_seq_length", "do_lower_case"):
    if ax_data.meta[key] != data.meta[key]:
      raise errors.UsageError(
        f"{ax_data.path}: {key} is {ax_data.meta[key]}, but "
        f"{data.meta[key]} in {data.directory}; prepare both alike."
      )


def _write(output_dir: pathlib.Path, table, selection) -> None:
  """Leaves the table, and the choice that `swe submission` reads."""
  text = io.StringIO()
  rich_console.Console(file=text, width=100).print(table)
  with files.complete_or_absent(output_dir / "table.txt") as scratch:
    pathlib.Path(scratch).write_text(text.getvalue(), encoding="utf-8")
  files.write_json(output_dir / "selection.json", selection)


def _sweep_of_flags(data: prepared_data.PreparedData) -> sweep_lib.Sweep:
  """Returns the sweep that the flags ask for, checked as far as it can be."""
  values = flags.FLAGS
  plan.check_task(values.task, data)
  _check_ax(data, values.ax_data_dir)
  return sweep_lib.Sweep(
    plan.Settings(
      data_dir=os.path.abspath(values.data_dir),
      checkpoint=os.path.abspath(values.checkpoint),
      init=values.init,
      epochs=values.epochs,
      max_train_examples=values.max_train_examples,
      params_override=values.params_override,
    ),
    plan.plan_runs(data, _learning_rates(values.learning_rates), values.seeds),
    values.output_dir,
  )


def main(argv: Sequence[str]) -> int:
  """Runs the sweep and prints its table.

  Returns:
    The exit status: 1 if something failed, so that the sweep is not complete.
  """
  files.refuse_arguments(argv[1:])
  values = flags.FLAGS
  files.require(
    task=values.task,
    checkpoint=values.checkpoint,
    data_dir=values.data_dir,
    output_dir=values.output_dir,
    epochs=values.epochs,
  )
  data = prepared_data.read_prepared_data(values.data_dir)
  sweep = _sweep_of_flags(data)
  metric = plan.selecting_metric(data)
  console = rich_console.Console()
  try:
    with worker_process.WorkerProcess() as worker:
      with progress_lib.SweepProgress(
        console, len(sweep.runs), metric
      ) as progress:
        outcome = sweep.execute(worker, progress)
        rows = table_lib.make_rows(
          sweep.runs, outcome.results, outcome.failures
        )
        choice = table_lib.choose(rows, metric)
        failed = bool(outcome.failures)
        if choice and (data.splits_of("test") or values.ax_data_dir):
          failed |= not sweep.predict(
            worker, choice.run, values.ax_data_dir, progress
          )
  except KeyboardInterrupt:
    console.print("interrupted; the same command goes on where it was")
    return 130
  title = f"{data.task}, {values.init} weights, {values.epochs:g} epochs"
  table = table_lib.render(rows, choice, metric, title)
  console.print(table)
  if choice is None:
    raise errors.UsageError(
      f"no run of {values.output_dir} has a score; the logs are in "
      f"{values.output_dir}/*/log.txt."
    )
  _write(sweep.output_dir, table, table_lib.selection(choice, metric))
  console.print(f"selected {sweep.directory(choice.run)}", soft_wrap=True)
  return int(failed)
