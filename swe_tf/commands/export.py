"""Writes the model of a checkpoint in another format.

    swe export --checkpoint=RUN --format=savedmodel --output_dir=DIR
    swe export --checkpoint=RUN --format=model_garden --output_dir=DIR
    swe export --checkpoint=RUN --format=huggingface --output_dir=DIR

`model_garden` is a checkpoint with the key `encoder`, which fine-tuning starts
from. The other two hold the whole model of a fine-tuning run, with its
tokenizer: `savedmodel` returns labels or answers for raw strings. Of a
pre-training run, `huggingface` includes the language-model head, and
`savedmodel` is the encoder, which takes raw strings if there is a vocabulary.
"""

import dataclasses
import time

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files

_FORMATS = ("savedmodel", "huggingface", "model_garden")


@dataclasses.dataclass(frozen=True)
class Options:
  checkpoint: str = opt.flag("A checkpoint, or a directory that has one.")
  format: str = opt.flag("The format to write.", choices=_FORMATS)
  output_dir: str = opt.flag("Directory to create.")
  config_file: str | None = opt.flag(
    "YAML file with task.model.encoder; by default beside the checkpoint.", None
  )
  vocab: str | None = opt.flag(
    "Vocabulary; by default vocab.txt beside the checkpoint, or that of the "
    "data that its config names.",
    None,
  )


def run(options: Options) -> None:
  files.refuse_existing([options.output_dir])
  files.check_output_dir(options.output_dir, "output_dir")
  checkpoint_files.find_with_config(options.checkpoint, options.config_file)
  if options.vocab:
    vocab_lib.Vocabulary.load(options.vocab)
  begin = time.monotonic()
  with messages.during(f"exporting {options.checkpoint}"):
    what = _export(options)
  messages.say(
    f"{what} as {options.format} in {time.monotonic() - begin:.0f} s: "
    f"{options.output_dir}"
  )
  if options.format == "savedmodel":
    signature = {"tag_set": "serve", "signature_def": "serving_default"}
    messages.say_next(
      "saved_model_cli show", dir=options.output_dir, **signature
    )


def _export(options: Options) -> str:
  """Writes the model; returns what it is."""
  # TensorFlow takes seconds to import.
  from swe_tf.convert import finetuned
  from swe_tf.convert import huggingface
  from swe_tf.convert import serving

  encoder = checkpoint_files.load_encoder(
    options.checkpoint, options.config_file
  )
  if options.vocab:
    encoder = encoder._replace(vocab_file=options.vocab)
  tuned = None
  if options.format != "model_garden":
    tuned = finetuned.read(
      options.checkpoint, options.config_file, options.vocab
    )
    if tuned:
      encoder = encoder._replace(vocab_file=tuned.vocab_file)
  with files.new_directory(options.output_dir) as scratch:
    if options.format == "model_garden":
      checkpoint_files.write_encoder(scratch, encoder)
    elif options.format == "huggingface":
      head = tuned or huggingface.read_head(encoder, options.checkpoint)
      huggingface.write_huggingface(scratch, encoder, head)
    elif tuned:
      serving.write(scratch, tuned)
    else:
      serving.write_encoder(scratch, encoder)
  return "the fine-tuned model" if tuned else "the encoder"
