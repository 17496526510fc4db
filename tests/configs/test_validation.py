"""Wrong flags, files and numbers are told in one line by `validate()`."""

import re

import gin
import pytest

from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.commands import stock_options
from swe_tf.configs import limits
from swe_tf.configs import parsing
from swe_tf.modeling import checkpoint_files

RECORDS, TEXT = "swe/bert_pretraining", "swe/bert_pretraining_text"
_LR = "trainer.optimizer_config.learning_rate"

# What an override must not be, and what the line says about it.
BAD = {
  "task.sharing.unitsize=1": "'unitsize'; did you mean unit_size?",
  "taks.seed=1": "an experiment has no parameter 'taks'; did you mean task?",
  "task.sharing=swe": "task.sharing is a table (mode, unit_size,",
  "task.sharing.loops=[{loop: 1}]": "loops[0] has no parameter 'loop'",
  "task.sharing.loops=3": "must be a list of tables",
  "trainer.train_steps=many": "('many') must be an integer.",
  "trainer.train_steps=null": "(null) must be an integer.",
  "trainer.train_steps='10'": "('10') must be an integer.",
  "trainer.train_steps=0": "trainer.train_steps (0) must be at least 1",
  f"{_LR}.polynomial.initial_learning_rate=-1e-3": "must be at least 0.",
  f"{_LR}.type=polynomal": "did you mean polynomial?",
  f"{_LR}.type=null": "learning_rate.type is not set",
  "trainer.optimizer_config.optimizer.type=swe": "one by gin/stock.gin.",
  "trainer.optimizer_config.optimizer.type=adafactor": "use adafactor_keras",
  "trainer.steps_per_loop=300": "must be a multiple of trainer.steps_per_loop",
  "runtime.distribution_strategy=mirored": "did you mean mirrored?",
  "runtime.distribution_strategy=true": "(True) must be text.",
  "runtime.num_gpus=2,runtime.distribution_strategy=one_device": "one device",
  "task.train_data.global_batch_size=0": "(0) must be at least 1.",
  "task.train_data.seq_length=1024": "more than the positions",
  "task.train_data.max_predictions_per_seq=600": "must be at most seq_length",
  "task.train_data.drop_remainder=maybe": "('maybe') must be true or false.",
  "task.model.encoder.any.num_attention_heads=7": "must divide hidden_size",
  "task.model.encoder.type=null": "task.model.encoder.type is not set",
  "task.init_checkpoint=7": "(7) must be text.",
  "task.sharing.unit_size=5": "unit_size (5) must divide the number of layers",
  "task.sharing.untie_step=500001": "untie_step (500001) must be between 0",
  "task.sharing.untie_fraction=1.5": "untie_fraction (1.5) must be between",
  "task.sharing.rule=fixd": "did you mean fixed?",
  "task.sharing.rule=adaptive,task.sharing.rho=1.5": "rho (1.5) must be a cos",
  "task.sharing.stages=[{}]": "task.sharing.stages is set, but",
  "task.sharing.rule=staged,task.sharing.stages=[{unit_size: 2}]": (
    "A stage begins at step 0"
  ),
  "task.sharing.rule=staged,task.sharing.unit_size=2,"
  "task.sharing.stages=[{unit_size: 3, from_step: 9}]": "not a multiple of",
  "task.sharing.recipe=few_loop": "did you mean few_loops?",
  "task.sharing.recipe=one_loop,task.sharing.untie_step=3": "untie_step",
  "task.seed=-1": "task.seed (-1) must be at least 0 and below 4294967296.",
  "task.seed=1e20": "task.seed (1e+20) is too large for an integer.",
  f"{_LR}.type=stepwise,{_LR}.stepwise.values=[.inf]": "values[0] (inf) is too",
  "task.model.encoder.any.num_layers=1e9": "must be at least 1 and below",
}
# What Model Garden would not even read, or reads otherwise.
BAD_TEXT = {
  "a,b": "'a,b' is not NAME=VALUE",
  "trainer.train_steps": "is not NAME=VALUE",
  "task.train_data.input_path=a,b": "input_path=a,b' is not NAME=VALUE",
  "{task: [}": "not YAML",
  "task=1,task.seed=2": "so is a parameter of this table",
  "task.seed=1,task.seed=2": "task.seed is set twice",
}
GOOD = [
  "runtime.distribution_strategy=off",
  "trainer.train_steps=1e3",
  f"{_LR}.polynomial.initial_learning_rate=1",
  "task.sharing.untie_step=null,task.sharing.untie_fraction=0",
  "task.sharing.loops=[{loops: 1}],task.sharing.unit_size=6",
  "{task: {sharing: {mode: none}}, trainer: {train_steps: 10}}",
  "task.train_data.input_path=/a/*.tfrecord",
  "task.train_data.input_path='a,b'",
  "task.model.encoder.type=bert",
]


def _options(experiment=RECORDS, files=(), override="", gin_files=(), *bound):
  return stock_options.StockOptions(
    experiment=experiment,
    config_file=tuple(files),
    params_override=override,
    gin_file=tuple(gin_files),
    gin_params=bound,
  )


def _parse(*call):
  options = _options(*call)
  parsing.parse_gin(options)
  return parsing.parse_configuration(options)


@pytest.fixture(autouse=True)
def fixture_no_bindings():
  yield
  gin.clear_config()


@pytest.mark.parametrize("override", [*BAD, *BAD_TEXT])
def test_a_wrong_override(override):
  with pytest.raises(errors.UsageError) as error:
    _parse(RECORDS, [], override)
  assert (BAD | BAD_TEXT)[override] in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("override", GOOD)
def test_a_right_override(override):
  config = _parse(RECORDS, [], override)
  if "1e3" in override:
    assert repr(config.trainer.train_steps) == "1000"
  if "rate=1" in override:  # Keras cannot decay from an integer.
    decay = config.trainer.optimizer_config.learning_rate.polynomial
    assert isinstance(decay.initial_learning_rate, float)
  if "=off" in override:
    assert config.runtime.distribution_strategy == "off"


@pytest.mark.parametrize(
  "content, message",
  [
    ("task: {sharing: [}", "x.yaml:1: not YAML"),
    ("- task", "x.yaml: an experiment is a table"),
    ("task: {sharing: {unit: 1}}", "x.yaml: task.sharing has no parameter"),
    (b"\xff\xfe", "is not UTF-8"),
  ],
)
def test_a_wrong_file(tmp_path, content, message):
  path = tmp_path / "x.yaml"
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  with pytest.raises(errors.UsageError, match=re.escape(message)):
    _parse(RECORDS, [str(path)])


@pytest.mark.parametrize(
  "call, message",
  [
    (("swe/bert_pretrainin",), "did you mean swe/bert_pretraining?"),
    (("mine",), "those of this package are swe/bert_pretraining, "),
    ((TEXT, [], "task.train_data.masking=words"), "masking ('words') must be"),
    ((RECORDS, [], "", ["absent.gin"]), "absent.gin"),
    ((RECORDS, [], "", [], "sharing.unit = 2"), "did you mean unit_size?"),
    ((RECORDS, [], "", [], "sharin.mode = 'swe'"), "'sharin'"),
    ((RECORDS, [], "", [], "sharing.mode = swe"), "with text in quotes."),
    ((RECORDS, [], "", [], "sharing.unit_size = 7"), "(7) must divide"),
    ((RECORDS, [], "", [], "UntieAtStep.step = 3"), "'step'"),
    (
      (RECORDS, [], "task.sharing.mode=none", [], "sharing.mode = 'swe'"),
      "task.sharing.mode is set to 'none', but gin binds sharing.mode = 'swe'",
    ),
    (
      (RECORDS, [], "", [], "SharedWeightsTrainer.untie_rule = 5"),
      "untie_rule (5) must be a rule",
    ),
    (
      (RECORDS, [], "", [], "SharedWeightsTrainer.untie_rul = 1"),
      "doesn't have a parameter named 'untie_rul'",
    ),
  ],
)
def test_a_wrong_name(call, message):
  with pytest.raises(errors.UsageError, match=re.escape(message)) as error:
    _parse(*call)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  "flags, message",
  [
    ((["experiments/models/bse.yaml"],), "mean experiments/models/base"),
    ((["absent.yaml"],), "--config_file: absent.yaml: there is no such file"),
    (([], "", ["gin/sew.gin"]), "did you mean gin/swe.gin?"),
  ],
)
def test_a_file_of_a_flag_is_missed_without_tensorflow(flags, message):
  with pytest.raises(errors.UsageError, match=re.escape(message)):
    _options(RECORDS, *flags).check_files()


def test_data_and_steps_must_be_given():
  config = _parse(RECORDS, [], "trainer.validation_steps=0")
  for needed, message in (
    ("train_data", "task.train_data.input_path is not set"),
    ("validation_data", "trainer.validation_steps is 0"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      limits.check_inputs(config, needed)
  given = {"train_data": {"tfds_name": "wikipedia"}}
  limits.check_inputs(config.replace(task=given), "train_data")


def test_checkpoints(tmp_path):
  def refused(place, message):
    with pytest.raises(errors.UsageError, match=message):
      checkpoint_files.find(place, "task.init_checkpoint")

  refused(tmp_path / "absent", r"no checkpoint at task.init_checkpoint \(")
  refused(tmp_path, "no checkpoint at")
  index = tmp_path / "ckpt-1.index"
  index.write_bytes(b"garbage")
  refused(tmp_path / "ckpt-1", "is not the index of a checkpoint")
  index.write_bytes(b"entries" + bytes.fromhex("57fb808b247547db"))
  refused(tmp_path / "ckpt-1", "no .*data-")
  (tmp_path / "ckpt-1.data-00000-of-00001").write_bytes(b"")
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ckpt-1"\n')
  for place in (tmp_path, tmp_path / "ckpt-1"):
    assert checkpoint_files.find(place) == str(tmp_path / "ckpt-1")
