"""Converts an encoder from another format to a Model Garden checkpoint.

    swe import --format=huggingface --input_dir=DIR --output_dir=DIR

Then fine-tune with `--config_file=DIR/encoder.yaml` and
`task.init_checkpoint=DIR`.
"""

import dataclasses

from absl import logging

from swe_tf import files
from swe_tf.commands import options as options_lib
from swe_tf.convert import huggingface_config


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of the command."""

  input_dir: str = options_lib.flag(
    "Directory with config.json, model.safetensors and vocab.txt."
  )
  output_dir: str = options_lib.flag(
    "Directory to create, for the checkpoint, encoder.yaml and vocab.txt."
  )
  format: str = options_lib.flag(
    "The format of the encoder.", "huggingface", choices=("huggingface",)
  )


def run(options: Options) -> None:
  """Converts the encoder and prints its size."""
  files.refuse_existing([options.output_dir])
  files.check_output_dir(options.output_dir, "output_dir")
  huggingface_config.read(options.input_dir)
  # TensorFlow takes seconds to import.
  from swe_tf.convert import huggingface

  logging.set_verbosity(logging.WARNING)  # Saving logs its durations.
  params = huggingface.import_huggingface(
    options.input_dir, options.output_dir
  ).encoder.params
  print(
    f"{options.output_dir}: {params['num_layers']} layers of width "
    f"{params['hidden_size']}, {params['vocab_size']:,} tokens"
  )
