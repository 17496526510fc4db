r"""Converts text files to TFRecords of masked sequences, or of bare tokens.

    swe prepare pretraining --input='wiki/*.txt.gz,books/*.txt' \
      --vocab=vocab.txt --output_dir=DIR --masking=whole_word

Model Garden's stock loader reads the shards. With `--fresh_masks` they hold two
bytes per token and no masks: `swe/bert_pretraining_text` draws them while
training, new ones in every pass. Shards depend only on the text and the flags,
not on --jobs. Re-run it after Ctrl-C to make the missing shards. At the end
`data.yaml` and `validation.yaml` say what to train with, as `--config_file`.
"""

import dataclasses
import os
import time

from rich import console as rich_console
import yaml

from swe_tf import errors
from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.data.prepare import job

_MASKING = ("random", "whole_word")


@dataclasses.dataclass(frozen=True)
class Options(job.Options):
  input: str = opt.flag("Text files: paths or globs.")
  vocab: str | None = opt.flag("WordPiece vocabulary file.", None)
  output_dir: str = opt.flag("Directory for shards, vocab.txt, manifest.json.")
  masking: str = opt.flag(
    "Mask tokens independently, or whole words.", "random", choices=_MASKING
  )
  masking_rate: float = opt.flag(
    "The fraction of the tokens to predict.", 0.15, least=0.01, most=0.9
  )
  seq_length: int = opt.flag(
    "Length of every sequence.", 512, least=8, most=2**16
  )
  max_predictions_per_seq: int | None = opt.flag(
    "By default seq_length * masking_rate, rounded up.", None, least=1
  )
  seed: int = opt.flag("Seed for the masks and the order.", 0, least=0)
  lower_case: bool = opt.lower_case()
  dupe_factor: int = opt.flag(
    "How many times each sequence is written, with new masks.", 1, least=1
  )
  fresh_masks: bool = opt.flag(
    "Write tokens only; masks are drawn while training.", False
  )
  num_shards: int | None = opt.flag(
    "Number of shards; by default one for every 16 MB of text.", None, least=1
  )
  learn_vocab: int | None = opt.flag(
    "Learn a vocabulary of about this size from the text; it is written to "
    "vocab.txt in --output_dir, and to --vocab if that is given.",
    None,
    least=100,
  )
  jobs: int | None = opt.flag(
    "Shards that are made at a time; by default one per core.", None, least=1
  )

  def __post_init__(self):
    if not self.vocab and not self.learn_vocab:
      raise errors.UsageError("--vocab is missing; give it or --learn_vocab.")
    if self.fresh_masks and self.dupe_factor > 1:
      raise errors.UsageError(
        "--fresh_masks writes each sequence once; leave out --dupe_factor."
      )


def run(options: Options) -> None:
  files.check_output_dir(options.output_dir, "output_dir")
  # Tokenizing runs on the CPU, and the result must not depend on a GPU.
  os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
  console = rich_console.Console(stderr=True, highlight=False)
  begin = time.monotonic()
  try:
    made = job.prepare(options, console)
  except KeyboardInterrupt:
    console.print("Stopped. Re-run the command to resume.")
    raise
  corpus, experiment = made["splits"]["train"], "swe/bert_pretraining"
  folder = options.output_dir
  if not files.is_url(folder):
    folder = os.path.abspath(folder)
  fields = {
    "input_path": os.path.join(folder, "*.tfrecord"),
    "seq_length": made["max_seq_length"],
    "max_predictions_per_seq": made["max_predictions_per_seq"],
  }
  if options.fresh_masks:
    experiment += "_text"
    fields |= {"masking": options.masking, "masking_rate": options.masking_rate}
  else:
    fields["use_next_sentence_label"] = False
  shape = {
    "vocab_size": made["vocab_size"],
    "max_position_embeddings": made["max_seq_length"],
  }
  for name in ("data", "validation"):
    part = "train_data" if name == "data" else "validation_data"
    task = {"model": {"encoder": {"any": shape}}, part: fields}
    text = f"# Of swe prepare pretraining, for {experiment}.\n"
    text += yaml.safe_dump({"task": task}, sort_keys=False)
    files.write_text(options.path(f"{name}.yaml"), text)
  print(
    f"{corpus['size']:,} examples, {corpus['tokens']:,} tokens, "
    f"{corpus['predictions']:,} predictions in a pass, made in "
    f"{time.monotonic() - begin:.0f} s: {options.output_dir}\nto validate on "
    f"it: --config_file={options.path('validation.yaml')}"
  )
  messages.say_next(
    "swe train --mode=train --config_file=experiments/small/tiny.yaml",
    config_file=options.path("data.yaml"),
    experiment=experiment,
    model_dir=f"{options.output_dir.rstrip('/')}_run",
  )
