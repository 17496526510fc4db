r"""Fine-tunes by the paper's protocol, on one task or on a whole column.

    swe finetune --task=SST-2 --checkpoint=RUN --data_dir=data/SST-2 \
      --output_dir=runs/glue/SST-2
    swe finetune --tasks=paper --checkpoint=RUN --data_dir=data \
      --output_dir=runs/column

Trains at nine peak learning rates, five runs of each for SQuAD, and selects on
the validation set. Re-run it to resume. The best run of a GLUE task predicts
the test set, for `swe submission`. With --tasks, --data_dir has a directory
named after each task, and the result is one column of the paper's tables;
`paper` is SQuAD v1.1 and v2.0, MNLI with AX, QNLI, QQP and SST-2.
"""

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.data.prepare import manifest
from swe_tf.modeling import checkpoint_files
from swe_tf.scoring import column
from swe_tf.studies import executors
from swe_tf.studies.finetune import protocol


@dataclasses.dataclass(frozen=True)
class Options(opt.ManyRuns):
  task: str = opt.flag("squad_v1.1, squad_v2.0, or a GLUE task.", "")
  tasks: tuple[str, ...] = opt.flag("Several tasks, or `paper` for all.", ())
  checkpoint: str = opt.flag(
    "A checkpoint, or a directory that has one, from a pre-training run or "
    "`swe import`, with params.yaml or encoder.yaml beside it."
  )
  data_dir: str = opt.flag(
    "Directory that `swe prepare` wrote; with --tasks, the parent of such."
  )
  learning_rates: tuple[float, ...] = opt.flag(
    "By default the paper's nine.", ()
  )
  seeds: int | None = opt.flag(
    "Runs per rate; by default the paper's: 5 for SQuAD, 1 for GLUE.",
    None,
    least=1,
  )
  init: str = opt.flag(
    "`random`: the same model without pre-training, for comparison.",
    protocol.CHECKPOINT,
    choices=protocol.INITS,
  )
  epochs: float = opt.flag("Passes over the training data.", 3.0, least=0.0)
  max_train_examples: int = opt.flag(
    "Train only on the first N records (for SQuAD, windows); 0: all.",
    0,
    least=0,
  )
  ax_data_dir: str = opt.flag(
    "For MNLI: directory that `swe prepare glue --task=AX` wrote, to predict.",
    "",
  )

  def __post_init__(self):
    if bool(self.task) == bool(self.tasks):
      raise errors.UsageError(
        "give either --task=NAME, such as SST-2, or --tasks=paper."
      )
    if self.tasks and self.ax_data_dir:
      raise errors.UsageError(
        "--ax_data_dir is for --task=MNLI; with --tasks, AX is looked for in "
        "--data_dir."
      )


def _plan(
  options: Options, task: str, data_dir: str, output_dir: str, ax_data_dir: str
) -> protocol.Plan:
  """Checks the flags and the data of one task and returns its plan."""
  data = manifest.read(data_dir)
  try:
    protocol.check_task(task, data)
    protocol.check_ax(data, ax_data_dir)
    runs = protocol.plan_runs(data, options.learning_rates, options.seeds)
  except errors.UsageError as error:
    raise errors.UsageError(f"--task={task}: {error}") from error
  files.check_output_dir(output_dir, "output_dir")
  checkpoint_files.find_with_config(options.checkpoint)
  # A cluster has other working directories.
  data_dir, checkpoint = (
    path if files.is_url(path) else os.path.abspath(path)
    for path in (data_dir, options.checkpoint)
  )
  return protocol.Plan(
    settings=protocol.Settings(
      data_dir=data_dir,
      checkpoint=checkpoint,
      init=options.init,
      epochs=options.epochs,
      max_train_examples=options.max_train_examples,
      params_override=options.params_override,
    ),
    runs=runs,
    output_dir=output_dir,
    data=data,
    ax_data_dir=ax_data_dir,
  )


def _column_plans(options: Options) -> list[protocol.Plan]:
  """Returns a plan for each of --tasks, in the order given or the paper's."""
  of_paper = options.tasks == ("paper",)
  tasks = column.TASKS if of_paper else options.tasks
  if "paper" in tasks or len(set(tasks)) < len(tasks):
    raise errors.UsageError(
      f"--tasks={','.join(tasks)}: give `paper` alone, or different tasks."
    )
  root, output = map(files.as_path, (options.data_dir, options.output_dir))
  needed = [*tasks, column.AX] if of_paper else tasks
  missing = [task for task in needed if not (root / task).is_dir()]
  if missing:
    raise errors.UsageError(
      f"--data_dir={options.data_dir} has no {', '.join(missing)}; "
      "prepare each task into a directory of its name: swe prepare glue "
      f"--task=SST-2 ... --output_dir={root / 'SST-2'}."
    )
  ax = {"MNLI": str(root / "AX")} if (root / column.AX).is_dir() else {}
  return [
    _plan(options, task, str(root / task), str(output / task), ax.get(task, ""))
    for task in tasks
  ]


def run(options: Options) -> int:
  """Runs the protocol and prints its tables; returns 1 if a run failed."""
  places = options.data_dir, options.output_dir, options.ax_data_dir
  plans = (
    _column_plans(options)
    if options.tasks
    else [_plan(options, options.task, *places)]
  )
  console = rich_console.Console()
  with messages.during("starting TensorFlow and checking the input"):
    from swe_tf.studies import sweep as sweep_lib
    from swe_tf.studies.finetune import task as task_lib

    sweep_lib.leave_gpus_to_runs()
    tasks = [task_lib.FineTuning(plan) for plan in plans]
  _print_room(options, tasks, console)
  executor = executors.make(options.jobs, options.ray_address)
  succeeded = [task.run(executor, console) for task in tasks]
  if options.tasks:
    _print_column(options, tasks, console)
  without = [task.plan for task in tasks if not task.has_selected]
  if without:
    logs = ", ".join(f"{plan.output_dir}/*/log.txt" for plan in without)
    raise errors.Failed(
      f"no run of {', '.join(plan.data.task for plan in without)} has a score; "
      f"the logs are in {logs}."
    )
  return int(not all(succeeded))


def _print_room(options: Options, tasks: Sequence[Any], console) -> None:
  """Prints how much disk the checkpoints take, at most and at the end."""
  from swe_tf.configs import cost

  # Weights, and the two slots of AdamW.
  checkpoints = [3 * cost.weight_bytes(task.runs[0].config) for task in tasks]
  rates = [
    len({r.about["axes"]["learning_rate"] for r in t.runs}) for t in tasks
  ]
  # The best of each rate, and of each run under way two while it saves.
  most = max(
    sum(checkpoints[:i]) + (rates[i] + 2 * options.jobs) * checkpoints[i]
    for i in range(len(tasks))
  )
  console.print(
    f"checkpoints will take up to {messages.size(most)}, and "
    f"{messages.size(sum(checkpoints))} at the end: the best of each task",
    soft_wrap=True,
  )


def _print_column(options: Options, tasks: Sequence[Any], console) -> None:
  """Prints the column and writes it to `column.json` and `column.txt`."""
  from swe_tf.studies.finetune import table as table_lib

  rows: dict[str, float] = {}
  for task in tasks:
    if task.has_selected:
      rows |= column.read_dev(task.plan.output_dir)
  scores, checkpoint = column.with_averages(rows), tasks[0].checkpoint
  title = f"{checkpoint}, {options.init} weights"
  table = table_lib.render_column(scores, title)
  console.print(table)
  folder = files.as_path(options.output_dir)
  files.write_text(folder / "column.txt", table_lib.as_text(table))
  content = {
    "checkpoint": checkpoint,
    "init": options.init,
    "tasks": [task.plan.data.task for task in tasks],
    "scores": scores,
  }
  files.write_json(folder / column.FILE_NAME, content)
  console.print(
    "SQuAD and GLUE are scored on their development sets here; the paper "
    "reports GLUE's test sets, which only the benchmark's site can score: swe "
    f"submission --runs={options.output_dir} --output=FILE.zip",
    soft_wrap=True,
  )
