"""The experiment that a `swe doctor` command is asked about.

The flags are those of `swe train`, so that a command line can be checked by
putting another word in the place of `train`. No data is read.
"""

from absl import flags
from absl import logging

import gin
from official.common import flags as tfm_flags
from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import experiment
from swe_tf.configs import parsing


def define_flags() -> None:
  """Defines the flags of `swe train`, of which `--experiment` is needed."""
  tfm_flags.define_flags()
  flags.mark_flag_as_required("experiment")


def read_config() -> cfg.ExperimentConfig:
  """Returns the experiment of the flags, validated.

  Raises:
    UsageError: If it is not one that shares weights.
  """
  values = flags.FLAGS
  logging.set_verbosity(logging.ERROR)  # The commands say what matters.
  gin.parse_config_files_and_bindings(values.gin_file, values.gin_params)
  config = parsing.parse_configuration(values, lock_return=False)
  if not isinstance(config, experiment.SharingExperimentConfig):
    raise errors.UsageError(
      f"--experiment={values.experiment} does not share weights; use "
      "swe/bert_pretraining or swe/bert_pretraining_text."
    )
  return config
