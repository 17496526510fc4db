"""The `swe export` command: the encoder of a checkpoint in other formats.

    swe export --checkpoint=RUN --format=savedmodel --output_dir=DIR
    swe export --checkpoint=RUN --format=model_garden --output_dir=DIR
    swe export --checkpoint=RUN --format=huggingface --output_dir=DIR

Heads are left out. `model_garden` is the checkpoint with the key `encoder`
that fine-tuning starts from; `huggingface` is for Post-LN encoders.
"""

from collections.abc import Sequence

from absl import app
from absl import flags
from absl import logging

from swe_tf import files

_CHECKPOINT = flags.DEFINE_string(
  "checkpoint", None, "A checkpoint, or a directory with one."
)
_FORMAT = flags.DEFINE_enum(
  "format",
  None,
  ["savedmodel", "huggingface", "model_garden"],
  "The format to write.",
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Directory to make.")
_CONFIG_FILE = flags.DEFINE_string(
  "config_file",
  None,
  "YAML file with task.model.encoder; by default "
  "encoder.yaml or params.yaml beside the checkpoint.",
)


@files.one_line_errors("swe export")
def main(argv: Sequence[str]) -> None:
  """Reads, converts, writes."""
  files.refuse_arguments(argv[1:])
  files.require(
    checkpoint=_CHECKPOINT.value,
    format=_FORMAT.value,
    output_dir=_OUTPUT_DIR.value,
  )
  files.refuse_existing([_OUTPUT_DIR.value])
  # pylint: disable=g-import-not-at-top
  from swe_tf.convert import encoder_files
  from swe_tf.convert import huggingface_export
  from swe_tf.convert import saved_model_export
  # pylint: enable=g-import-not-at-top

  logging.set_verbosity(logging.WARNING)  # Saving logs its durations.
  write = {
    "savedmodel": saved_model_export.write_saved_model,
    "huggingface": huggingface_export.write_huggingface,
    "model_garden": encoder_files.write_encoder,
  }[_FORMAT.value]
  encoder = encoder_files.load_encoder(_CHECKPOINT.value, _CONFIG_FILE.value)
  with encoder_files.new_directory(_OUTPUT_DIR.value) as scratch:
    write(scratch, encoder)
  print(f"{_OUTPUT_DIR.value}: {_FORMAT.value}")


if __name__ == "__main__":
  app.run(main)
