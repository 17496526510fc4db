"""Reads the experiment that a `swe doctor` command examines.

The flags are those of `swe train`, so a command line can be checked by
replacing the word `train`. No data is read.
"""

from typing import Any

from absl import logging

from official.core import config_definitions as cfg
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import experiment
from swe_tf.configs import parsing


def read_config(options: Any, must_share: bool = True) -> cfg.ExperimentConfig:
  """Returns the experiment of the options, validated.

  Args:
    options: Has the flags of the stock driver as attributes.
    must_share: Whether only experiments that share weights are accepted;
      otherwise all of this package are.

  Raises:
    UsageError: If it is another experiment.
  """
  logging.set_verbosity(logging.ERROR)  # The commands print what matters.
  parsing.parse_gin(options)
  config = parsing.parse_configuration(options, lock_return=False)
  if not must_share and isinstance(config, experiment.CheckedExperimentConfig):
    return config
  if not isinstance(config, experiment.SharingExperimentConfig):
    raise errors.UsageError(
      f"--experiment={options.experiment} does not share weights; use "
      "swe/bert_pretraining or swe/bert_pretraining_text."
    )
  return config
