"""Wrong flags, files and numbers are told without TensorFlow, in one line.

`test_fields.py` holds the same calls against the experiments themselves.
"""

import pathlib
import re
import subprocess
import sys

import pytest

from swe_tf import errors
from swe_tf.configs import early
from swe_tf.configs import override_text
from swe_tf.data import presence
from swe_tf.modeling import checkpoint_files

ROOT = pathlib.Path(__file__).parents[2]
RECORDS = "swe/bert_pretraining"
_LR = "trainer.optimizer_config.learning_rate"

# What an override must not be, and what the line says about it.
BAD = {
  "task.sharing.unitsize=1": "'unitsize'; did you mean unit_size?",
  "taks.seed=1": "an experiment has no parameter 'taks'; did you mean task?",
  "task.sharing=swe": "task.sharing is a table (mode, unit_size,",
  "task.sharing.loops=[{loop: 1}]": "loops[0] has no parameter 'loop'",
  "task.sharing.loops=3": "must be a list of tables",
  "trainer.train_steps=many": "('many') must be an integer.",
  "trainer.train_steps=10.5": "(10.5) must be an integer.",
  "trainer.train_steps=null": "(null) must be an integer.",
  "trainer.train_steps='10'": "write 10 without quotes.",
  "trainer.train_steps=0": "trainer.train_steps (0) must be at least 1",
  "trainer.train_steps=[1,2]": "([1, 2]) must be an integer.",
  f"{_LR}.polynomial.initial_learning_rate=-1e-3": "must be at least 0.",
  f"{_LR}.polynomial.initial_learning_rate=fast": "must be a number.",
  f"{_LR}.type=polynomal": "did you mean polynomial?",
  f"{_LR}.type=null": "learning_rate.type is not set",
  "trainer.optimizer_config.optimizer.type=adam_w": "did you mean adamw?",
  "trainer.optimizer_config.optimizer.adamw.beta_2=1.0": "below 1.",
  "trainer.optimizer_config.optimizer.type=adafactor": "use adafactor_keras",
  "trainer.steps_per_loop=300": "must be a multiple of trainer.steps_per_loop",
  "trainer.steps_per_loop=0": "trainer.steps_per_loop (0) must be at least 1.",
  "trainer.validation_steps=-2": "validation_steps (-2) must be at least -1.",
  "trainer.max_to_keep=0": "trainer.max_to_keep (0) must be at least 1.",
  "runtime.distribution_strategy=mirored": "did you mean mirrored?",
  "runtime.distribution_strategy=true": "put it in quotes.",
  "runtime.num_gpus=-1": "runtime.num_gpus (-1) must be at least 0.",
  "runtime.num_gpus=2,runtime.distribution_strategy=one_device": "one device",
  "runtime.mixed_precision_dtype=bfloat": "did you mean bfloat16?",
  "task.train_data.global_batch_size=0": "(0) must be at least 1.",
  "task.validation_data.global_batch_size=-8": "(-8) must be at least 1.",
  "task.train_data.seq_length=1024": "more than the positions",
  "task.train_data.max_predictions_per_seq=600": "must be at most seq_length",
  "task.train_data.drop_remainder=maybe": "('maybe') must be true or false.",
  "task.model.encoder.any.num_attention_heads=7": "must divide hidden_size",
  "task.model.encoder.any.dropout_rate=1.5": "below 1.",
  "task.model.encoder.any.num_layers=0": "num_layers (0) must be at least 1.",
  "task.model.encoder.type=brt": "did you mean bert?",
  "task.model.encoder.type=null": "task.model.encoder.type is not set",
  "task.init_checkpoint=7": "(7) must be text.",
  "task.sharing.unit_size=5": "unit_size (5) must divide the number of layers",
  "task.sharing.unit_size=0": "unit_size (0) must divide",
  "task.sharing.untie_step=500001": "untie_step (500001) must be between 0",
  "task.sharing.untie_fraction=1.5": "untie_fraction (1.5) must be between",
  "task.sharing.mode=swee": "did you mean swe?",
  "task.sharing.rule=fixd": "did you mean fixed?",
  "task.sharing.rule=split,task.sharing.rho=1.5": "rho (1.5) must be a cosine",
  "task.sharing.rule=adaptive,task.sharing.patience=0": "patience (0) must be",
  "task.sharing.rule=staged,task.sharing.stages=[{unit_size: 2}]": (
    "A stage begins at step 0"
  ),
  "task.sharing.stages=[{unit_size: 2}]": "set it to 'staged'.",
  "task.sharing.recipe=few_loop": "did you mean few_loops?",
  "task.sharing.share=biases": "must be all or kernels.",
  "task.growth.method=stackin": "did you mean stacking?",
  "task.growth.method=stacking": "a model that grows shares no weights",
}
# What Model Garden would not even read, or reads otherwise.
BAD_TEXT = {
  "a,b": "'a,b' is not NAME=VALUE",
  "trainer.train_steps": "is not NAME=VALUE",
  "task.train_data.input_path=a,b": "'b' is not NAME=VALUE",
  "{task: [}": "not YAML",
  "task=1,task.seed=2": "so is the table that it belongs to",
}
GOOD = [
  "runtime.distribution_strategy=off",
  "trainer.train_steps=1e3",
  f"{_LR}.polynomial.initial_learning_rate=1e-3",
  "task.sharing.untie_step=null,task.sharing.untie_fraction=0",
  "task.sharing.loops=[{loops: 1}],task.sharing.unit_size=6",
  "{task: {sharing: {mode: none}}, trainer: {train_steps: 10}}",
  "task.train_data.input_path=/a/*.tfrecord",
  "task.train_data.input_path='a,b'",
  "task.sharing.recipe=few_loops",
  "task.model.encoder.type=bert",
  "trainer.optimizer_config.ema={average_decay: 0.9}",
]


@pytest.mark.parametrize("override", [*BAD, *BAD_TEXT])
def test_a_wrong_override(override):
  with pytest.raises(errors.UsageError) as error:
    early.read_values(RECORDS, params_override=override)
  assert (BAD | BAD_TEXT)[override] in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("override", GOOD)
def test_a_right_override(override):
  assert early.read_values(RECORDS, params_override=override)


def test_off_is_text_and_a_whole_number_an_integer():
  values = early.read_values(
    RECORDS,
    params_override="runtime.distribution_strategy=off,trainer.train_steps=1e3",
  )
  assert values["runtime"]["distribution_strategy"] == "off"
  assert repr(values["trainer"]["train_steps"]) == "1000"


@pytest.mark.parametrize(
  "content, message",
  [
    ("task: {sharing: [}", "x.yaml:1: not YAML"),
    ("- task", "x.yaml: parameters are a table"),
    ("", "x.yaml: parameters are a table"),
    ("task", "but this is 'task'"),
    ("task: {sharing: {unit: 1}}", "x.yaml: task.sharing has no parameter"),
    (b"\xff\xfe", "is not UTF-8"),
  ],
)
def test_a_wrong_file(tmp_path, content, message):
  path = tmp_path / "x.yaml"
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  with pytest.raises(errors.UsageError, match=re.escape(message)):
    early.read_values(RECORDS, [str(path)])


@pytest.mark.parametrize(
  "call, message",
  [
    (("swe/bert_pretrainin",), "did you mean swe/bert_pretraining?"),
    (("mine",), "those of this package are swe/bert_pretraining, "),
    (
      (RECORDS, ["experiments/models/bse.yaml"]),
      "mean experiments/models/base",
    ),
    ((RECORDS, ["absent.yaml"]), "absent.yaml: there is no such file"),
    ((RECORDS, [], "", ["gin/sew.gin"]), "did you mean gin/swe.gin?"),
    ((RECORDS, [], "", [], ["sharing.unit = 2"]), "did you mean unit_size?"),
    ((RECORDS, [], "", [], ["sharin.mode = 'swe'"]), "did you mean sharing?"),
    ((RECORDS, [], "", [], ["sharing.mode = swe"]), "with text in quotes."),
    ((RECORDS, [], "", [], ["sharing.unit_size = 'a'"]), "must be an integer."),
    ((RECORDS, [], "", [], ["sharing.unit_size = 7"]), "(7) must divide"),
    (
      (RECORDS, [], "", [], ["UntieAtStep.step = 3"]),
      "has no parameter 'step'",
    ),
    (
      (
        RECORDS,
        [],
        "",
        [],
        ["SharedWeightsTrainer.untie_rule = @UntieAtStp()"],
      ),
      "did you mean UntieAtStep?",
    ),
  ],
)
def test_a_wrong_name(call, message):
  with pytest.raises(errors.UsageError, match=re.escape(message)):
    early.read_values(*call)


def test_what_others_may_register_is_left_to_them(tmp_path, monkeypatch):
  path = tmp_path / "mine.gin"
  path.write_text("import my_project\nmy_thing.size = 3\n")
  assert early.read_values("mine", gin_files=[str(path)]) is None
  monkeypatch.setenv("SWE_PLUGINS", "my_project")
  assert early.read_values("mine") is None
  assert early.read_values("bert/pretraining", params_override="a.b=1") is None


@pytest.mark.parametrize("name", ["units_2", "few_loops", "staged", "stacking"])
def test_gin_files_of_the_package_pass(name):
  gin_files = [str(ROOT / "gin" / f"{each}.gin") for each in ("swe", name)]
  assert early.read_values(RECORDS, gin_files=gin_files)


def test_what_follows_from_macros_is_left_to_gin():
  units = ["UNITS = 7", "sharing.unit_size = %UNITS"]
  assert early.read_values(RECORDS, gin_params=units)


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


def test_data_that_is_not_there(tmp_path):
  text = {"input_path": str(tmp_path / "a.txt"), "vocab_file_path": "absent"}
  for task, message in (
    ({}, "task.train_data.input_path is not set"),
    ({"train_data": {"input_path": "no/*"}}, "no/* does not match any files"),
    ({"train_data": text}, "a.txt does not match any files"),
  ):
    with pytest.raises(errors.UsageError, match=re.escape(message)):
      presence.check(task, needed=("train_data",))
  (tmp_path / "a.txt").write_text("text")
  with pytest.raises(
    errors.UsageError, match="vocab_file_path: the vocabulary"
  ):
    presence.check({"train_data": text})
  presence.check(
    {"train_data": {"input_path": "dummy"}}, needed=("train_data",)
  )


def test_single_values_of_a_list_are_left_to_model_garden():
  assert override_text.parse("a.b[0]=1,a.b[1]=2") is None


def test_nothing_of_this_imports_tensorflow():
  code = (
    "import sys\n"
    "from swe_tf.commands import doctor, finetune, pilot, sweep, train\n"
    "from swe_tf.configs import early\n"
    f"early.read_values('{RECORDS}', ['experiments/models/base.yaml'])\n"
    "sys.exit('tensorflow' in sys.modules)"
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
