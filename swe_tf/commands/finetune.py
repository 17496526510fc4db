r"""Fine-tunes on one task by the paper's protocol.

    swe finetune --task=SST-2 --checkpoint=RUN --data_dir=data/SST-2 \
      --output_dir=runs/glue/SST-2

Nine peak learning rates, for SQuAD with five runs of each; the validation set
selects. Re-run it to resume. The best run of a GLUE task predicts the test
set, where `swe submission` finds it.
"""

import dataclasses
import io
import os

from rich import console as rich_console

from swe_tf import errors
from swe_tf import files
from swe_tf.commands import options as options_lib
from swe_tf.data.prepare import prepared_data
from swe_tf.finetune import execution
from swe_tf.finetune import protocol
from swe_tf.finetune import table as table_lib
from swe_tf.runs import launcher


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  task: str = options_lib.flag(
    "squad_v1.1, squad_v2.0, or a GLUE task such as SST-2."
  )
  checkpoint: str = options_lib.flag(
    "A checkpoint or a directory with one: of a pre-training run, or what "
    "`swe import` wrote. The architecture is taken from the params.yaml or "
    "encoder.yaml beside it."
  )
  data_dir: str = options_lib.flag("What `swe prepare` wrote.")
  output_dir: str = options_lib.flag("Directory for the runs.")
  learning_rates: tuple[float, ...] = options_lib.flag(
    "Peak learning rates; by default the paper's nine.", ()
  )
  seeds: int | None = options_lib.flag(
    "Runs for each learning rate; by default 5 for SQuAD and 1 for GLUE, as "
    "in the paper.",
    None,
    lower_bound=1,
  )
  init: str = options_lib.flag(
    "`random` starts from random weights: the same model without "
    "pre-training, for comparison.",
    protocol.CHECKPOINT,
    choices=protocol.INITS,
  )
  epochs: float = options_lib.flag(
    "Passes over the training data.", 3.0, lower_bound=0.0
  )
  max_train_examples: int = options_lib.flag(
    "Train only on the first N records; for SQuAD these are windows. 0 "
    "for all.",
    0,
    lower_bound=0,
  )
  ax_data_dir: str = options_lib.flag(
    "For MNLI: what `swe prepare glue --task=AX` wrote, to be answered by the "
    "best run.",
    "",
  )
  params_override: str = options_lib.flag(
    "Overrides of the experiment, as for swe train: "
    "task.train_data.global_batch_size=16, runtime.num_gpus=1, ...",
    "",
  )


def _absolute(path: str) -> str:
  return path if files.is_url(path) else os.path.abspath(path)


def _plan(
  options: Options, data: prepared_data.PreparedData
) -> execution.FineTuning:
  """Returns what the flags ask for, checked as far as it can be."""
  protocol.check_task(options.task, data)
  protocol.check_ax(data, options.ax_data_dir)
  settings = protocol.Settings(
    data_dir=_absolute(options.data_dir),
    checkpoint=_absolute(options.checkpoint),
    init=options.init,
    epochs=options.epochs,
    max_train_examples=options.max_train_examples,
    params_override=options.params_override,
  )
  runs = protocol.plan_runs(data, options.learning_rates, options.seeds)
  return execution.FineTuning(settings, runs, options.output_dir)


def run(options: Options) -> int:
  """Runs the protocol and prints its table; 1 if something failed."""
  data = prepared_data.read_prepared_data(options.data_dir)
  plan, metric = _plan(options, data), protocol.selecting_metric(data)
  console = rich_console.Console()
  with launcher.workers(stays=True) as (worker,):
    sweep = plan.sweep()
    if len(sweep.results()) < len(plan.runs):
      console.print("starting TensorFlow and checking the input ...")
      plan.check(worker)
      sweep = plan.sweep()
    with sweep.progress(
      console, lambda result: table_lib.summarize(result, metric)
    ) as progress:
      failures = sweep.execute([worker], progress)
      rows = table_lib.make_rows(plan.runs, sweep.results(), failures)
      choice = table_lib.choose(rows, metric)
      failed = bool(failures)
      if choice and (data.splits_of("test") or options.ax_data_dir):
        failed |= not plan.predict(
          worker, choice.run, options.ax_data_dir, progress
        )
  title = f"{data.task}, {options.init} weights, {options.epochs:g} epochs"
  table = table_lib.render(rows, choice, metric, title)
  console.print(table)
  if choice is None:
    raise errors.Failed(
      f"no run of {options.output_dir} has a score; the logs are in "
      f"{options.output_dir}/*/log.txt."
    )
  text = io.StringIO()
  rich_console.Console(file=text, width=100).print(table)
  files.write_text(plan.output_dir / "table.txt", text.getvalue())
  files.write_json(
    plan.output_dir / "selection.json", table_lib.selection(choice, metric)
  )
  console.print(f"selected {plan.output_dir / choice.run.name}", soft_wrap=True)
  return int(failed)
