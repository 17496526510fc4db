"""The `swe import` command: an encoder of another format to Model Garden's.

    swe import --format=huggingface --input_dir=DIR --output_dir=DIR

Then fine-tune with `--config_file=DIR/encoder.yaml` and
`task.init_checkpoint=DIR`.
"""

from collections.abc import Sequence

from absl import app
from absl import flags
from absl import logging

from swe_tf import files

_FORMAT = flags.DEFINE_enum(
  "format", "huggingface", ["huggingface"], "The format of the encoder."
)
_INPUT_DIR = flags.DEFINE_string(
  "input_dir", None, "Has config.json, model.safetensors and vocab.txt."
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir",
  None,
  "Directory to make, for the checkpoint, encoder.yaml and vocab.txt.",
)


@files.one_line_errors("swe import")
def main(argv: Sequence[str]) -> None:
  """Converts and says how to go on."""
  files.refuse_arguments(argv[1:])
  files.require(input_dir=_INPUT_DIR.value, output_dir=_OUTPUT_DIR.value)
  files.refuse_existing([_OUTPUT_DIR.value])
  # TensorFlow takes seconds to import.
  from swe_tf.convert import huggingface_import  # pylint: disable=g-import-not-at-top

  logging.set_verbosity(logging.WARNING)  # Saving logs its durations.
  params = huggingface_import.import_huggingface(
    _INPUT_DIR.value, _OUTPUT_DIR.value
  ).params
  print(
    f"{_OUTPUT_DIR.value}: {params['num_layers']} layers of width "
    f"{params['hidden_size']}, {params['vocab_size']:,} tokens"
  )


if __name__ == "__main__":
  app.run(main)
