"""The Model Garden experiment of one run, as `swe train` would be given it."""

from official.core import config_definitions as cfg
from official.core import exp_factory
from official.modeling import hyperparams
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.data.prepare import prepared_data
from swe_tf.finetune import plan
from swe_tf.tasks import encoder_source


def build_config(
  settings: plan.Settings, run: plan.Run
) -> cfg.ExperimentConfig:
  """Returns the complete config of a run, locked.

  Args:
    settings: What all runs of the sweep have in common.
    run: The run.

  Raises:
    UsageError: If data, checkpoint and settings do not go together.
  """
  data = prepared_data.read_prepared_data(settings.data_dir)
  source = encoder_source.find_encoder(settings.checkpoint)
  encoder_source.check_vocabulary(source, data)
  config = exp_factory.get_exp_config(
    "swe/squad" if data.is_squad else "swe/glue"
  )
  config.task.model.encoder = source.encoder.config
  config.override(
    {
      "task": {
        "data_dir": str(data.directory),
        "init_checkpoint": (
          source.checkpoint if settings.init == plan.CHECKPOINT else ""
        ),
        "epochs": settings.epochs,
        "max_train_examples": settings.max_train_examples,
        "seed": run.seed,
        "train_data": {"seed": run.seed},
      },
      "trainer": {
        "optimizer_config": {
          "learning_rate": {
            "polynomial": {"initial_learning_rate": run.learning_rate}
          }
        }
      },
    }
  )
  if settings.params_override:
    try:
      config = hyperparams.override_params_dict(
        config, settings.params_override, is_strict=True
      )
    except (KeyError, ValueError) as error:
      raise errors.UsageError(
        f"--params_override={settings.params_override}: "
        f"{str(error).splitlines()[0]}"
      ) from error
  config.validate()
  config.lock()
  return config
