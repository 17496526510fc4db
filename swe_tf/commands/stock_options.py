"""The flags of `official.nlp.train` as options, for `swe train` and others.

`swe_tf.configs.parsing` and Model Garden's parser accept these options in place
of flags.
"""

import dataclasses

from swe_tf import library
from swe_tf.commands import options

MODES = (
  "train",
  "eval",
  "train_and_eval",
  "continuous_eval",
  "continuous_train_and_eval",
  "train_and_validate",
  "train_and_post_eval",
)


@dataclasses.dataclass(frozen=True)
class StockOptions:
  """The flags that the stock driver accepts."""

  experiment: str = options.flag(
    "The experiment, such as swe/bert_pretraining."
  )
  mode: str | None = options.flag("What to run.", None, choices=MODES)
  model_dir: str | None = options.flag(
    "Directory for checkpoints, summaries and params.yaml.", None
  )
  config_file: tuple[str, ...] = options.flag(
    "YAML file that overrides the experiment; can be repeated, later files "
    "win. Names that `swe experiments` lists work from any directory.",
    (),
    repeated=True,
  )
  params_override: str | None = options.flag(
    "Overrides that take precedence over all files: YAML, or a.b=1,c.d=2.", None
  )
  gin_file: tuple[str, ...] = options.flag(
    "Gin file; can be repeated.", (), repeated=True
  )
  gin_params: tuple[str, ...] = options.flag(
    "Gin binding; can be repeated.", (), repeated=True
  )
  tpu: str | None = options.flag("The TPU: its name or grpc:// address.", None)
  tf_data_service: str | None = options.flag(
    "The address of the tf.data service.", None
  )
  tpu_platform: str | None = options.flag("The type of TPU platform.", None)
  tfhub_handle: str | None = options.flag("Not used by this driver.", None)
  tflex_output_uri: str | None = options.flag("Not used by this driver.", None)
  pretrain_steps: int | None = options.flag(
    "Steps of the pre-training run that continuous_train_and_eval follows.",
    None,
  )
  enable_async_checkpointing: bool = options.flag(
    "Write checkpoints in the background during training.", True
  )

  def __post_init__(self):
    for name in ("config_file", "gin_file"):
      found = tuple(map(library.find, getattr(self, name)))
      object.__setattr__(self, name, found)

  def __contains__(self, name: str) -> bool:
    """Supports `name in flags`, which Model Garden uses."""
    return hasattr(self, name)
