"""Converts an encoder from another format to a Model Garden checkpoint.

    swe import --format=huggingface --input_dir=DIR --output_dir=DIR

Then fine-tune with `--config_file=DIR/encoder.yaml` and
`task.init_checkpoint=DIR`.
"""

import dataclasses
import time

from swe_tf import files
from swe_tf import messages
from swe_tf.commands import options as opt
from swe_tf.convert import huggingface_config


@dataclasses.dataclass(frozen=True)
class Options:
  input_dir: str = opt.flag(
    "Directory with config.json, model.safetensors and vocab.txt."
  )
  output_dir: str = opt.flag("Directory to create, also for encoder.yaml.")
  format: str = opt.flag(
    "The format of the encoder.", "huggingface", choices=("huggingface",)
  )


def run(options: Options) -> None:
  files.refuse_existing([options.output_dir])
  files.check_output_dir(options.output_dir, "output_dir")
  huggingface_config.read(options.input_dir)
  begin = time.monotonic()
  with messages.during(f"importing {options.input_dir}"):
    # TensorFlow takes seconds to import.
    from swe_tf.convert import huggingface

    params = huggingface.import_huggingface(
      options.input_dir, options.output_dir
    ).encoder.params
  messages.say(
    f"{params['num_layers']} layers of width {params['hidden_size']}, "
    f"{params['vocab_size']:,} tokens in {time.monotonic() - begin:.0f} s: "
    f"{options.output_dir}"
  )
  messages.say_next(
    "swe finetune --task=SST-2 --data_dir=DIR",
    checkpoint=options.output_dir,
    output_dir=f"{options.output_dir.rstrip('/')}_finetuned",
  )
