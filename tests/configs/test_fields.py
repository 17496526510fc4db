"""`fields.json` and the early checks agree with the experiments themselves."""

import json

import pytest

from official.core import exp_factory
from official.modeling import hyperparams
from official.modeling.hyperparams import params_dict
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.configs import early
from swe_tf.configs import override_text
from tests import config_table
from tests.configs import test_early


def test_the_table_is_up_to_date():
  found = json.loads(config_table.PATH.read_text("utf-8"))
  made = json.loads(json.dumps(config_table.make()))
  advice = "run python -m tests.config_table"
  # Other tests register experiments and gin names of their own.
  for name in ("experiments", "classes"):
    assert found[name] == made[name], advice
  assert set(found["others"]) <= set(made["others"]), advice
  assert found["gin"].items() <= made["gin"].items(), advice


def _read(override):
  config = exp_factory.get_exp_config(test_early.RECORDS)
  hyperparams.override_params_dict(config, override, is_strict=True)
  config.validate()
  return config


@pytest.mark.parametrize("override", test_early.BAD)
def test_an_experiment_refuses_the_same(override):
  with pytest.raises(errors.UsageError) as error:
    _read(override)
  message = test_early.BAD[override]
  assert message.split("/")[-1] in str(error.value)


@pytest.mark.parametrize("override", test_early.GOOD)
def test_an_experiment_takes_the_same(override):
  config = _read(override).as_dict()
  values = early.read_values(test_early.RECORDS, params_override=override)
  if "recipe" not in override:
    assert config["task"]["sharing"] == values["task"]["sharing"] | {
      "loops": config["task"]["sharing"]["loops"]
    }
  assert config["runtime"] == values["runtime"]
  assert config["trainer"]["train_steps"] == values["trainer"]["train_steps"]


@pytest.mark.parametrize(
  "text",
  [
    *(text for text in test_early.BAD if "[" not in text),
    *test_early.GOOD,
    "a.b=1, a.c = 'x, y',d=[1, 2]",
    "a=true,b=no,c=0x10,d=1_000,e=1e-3,f=1.5,g=.5,h=",
    "a=gs://bucket/x,b=/c:d,c=soon,d='gs'",
    "a=/data/{x}.tfrecord",
    'a="1",b=~',
  ],
)
def test_overrides_are_read_as_model_garden_reads_them(text):
  class Taken(params_dict.ParamsDict):
    def override(self, override_params, is_strict=True):
      self.__dict__["taken"] = override_params

  taken = Taken()
  hyperparams.override_params_dict(taken, text, is_strict=True)
  assert override_text.parse(text) == taken.__dict__["taken"]
