"""Every file of `experiments/`: the paper's numbers, the parser, a step."""

import collections
import dataclasses
import functools
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import yaml

from experiments import index
from official.core import exp_factory
from official.core import task_factory
from official.core import train_utils
from swe_tf.analysis import paper
from swe_tf.configs import cost
from swe_tf.data.text import budget
from swe_tf.data.text import vocab
from swe_tf.modeling import sizes
from swe_tf.studies import experiments
from swe_tf.studies import study_file
from swe_tf.training import trainer as trainer_lib
from tests import tiny
from tests.data import corpus

EXPERIMENTS = pathlib.Path(index.ROOT) / "experiments"
ROWS = index.read_rows()

# What the paper says about a row.
Paper = collections.namedtuple(
  "Paper", "size peak steps mode unit_size accuracy"
)


def _read_paper():
  """Returns the columns of Tables 1 to 5 by the names of their files."""
  found = {}
  for column in paper.TABLES.itertuples():
    method, unit_size = column.method, column.unit_size
    name = f"table{column.table}/{method}"
    if column.table < 4:
      label = "500k" if column.steps == 500_000 else "1m"
      data = "xlnet_" if column.data == "xlnet" else ""
      name = f"table{column.table}/{data}{column.model}_{label}_{method}"
    elif column.table == 4:
      name = f"table4/units_{unit_size}x{24 // unit_size}"
    if name == "table4/units_1x24":
      continue  # Of Table 1.
    smaller = column.data == "xlnet" or column.model == "24x1536"
    mode = method if method in ("swe", "reparameterize") else "none"
    setting = column.model, 2e-4 if smaller else 3e-4, column.steps
    found[name] = Paper(*setting, mode, unit_size, column.MLM)
  # What Table 5 is compared with, and the end of Figure 4's axis, which has no
  # number.
  baseline = found["table5/baseline"] = found["table1/large_500k_baseline"]
  found["table5/albert"] = baseline._replace(mode="swe", accuracy=None)
  return found


PAPER = _read_paper()


def name_of(row):
  return row.path.removeprefix("experiments/").removesuffix(".yaml")


def size_of(name):
  return dataclasses.asdict(sizes.SIZES[name]).items()


def test_every_row_of_the_paper_has_a_file():
  assert sorted(map(name_of, ROWS)) == sorted(PAPER)
  assert len(PAPER) == 29


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_row_has_the_numbers_of_the_paper(row):
  said = PAPER[name_of(row)]
  config = index.load_config(row)

  encoder = config.task.model.encoder.get()
  assert encoder.as_dict().items() >= size_of(said.size)
  assert encoder.norm_first
  assert encoder.vocab_size == 30522
  assert encoder.max_position_embeddings == 512
  assert encoder.dropout_rate == encoder.attention_dropout_rate == 0.1
  for data in (config.task.train_data, config.task.validation_data):
    assert data.global_batch_size == data.seq_length == 512
    assert (data.masking_rate, data.max_predictions_per_seq) == (0.15, 0)
    is_xlnet = "xlnet" in row.path
    assert data.masking == ("whole_word" if is_xlnet else "random")

  assert config.trainer.train_steps == said.steps
  task = task_factory.get_task(config.task)
  rate = train_utils.create_optimizer(task, config).learning_rate
  assert rate(10_000) == np.float32(said.peak)
  assert rate(said.steps) == 0.0
  assert config.task.sharing.mode == said.mode
  assert config.task.sharing.unit_size == said.unit_size
  tau = said.steps // 10 if said.mode == "swe" else 0
  if said.accuracy is None:
    tau = said.steps
  assert cost.estimate(config).shared_steps == tau
  is_net2net = config.task.growth.method == "net2net"
  assert is_net2net == (name_of(row) == "table5/net2net")


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_header_says_what_the_row_is_and_costs(row):
  said = PAPER[name_of(row)]
  assert row.title.startswith(f"Table {name_of(row)[len('table')]}, ")
  assert ("0.5 m iter" in row.title) == (said.steps == 500_000)
  names = ("Baseline", "Net2Net")
  assert any(n in row.title for n in names) == (said.mode == "none")
  expected = "not printed in the paper"
  if said.accuracy is not None:
    expected = f"{said.accuracy:.2f} % MLM accuracy"
  assert row.facts["expected"] == expected
  assert row.command[:3] == ["python", "-m", "swe_tf.train"]
  assert row.flags("config_file")[-1] == row.path
  config = index.load_config(row)
  assert config.task.train_data.input_path == "$TRAIN"
  assert config.task.validation_data.input_path == "$VALIDATION"
  assert config.runtime.distribution_strategy == "tpu"
  assert config.runtime.mixed_precision_dtype == "bfloat16"
  text = (EXPERIMENTS.parent / row.path).read_text()
  assert index.with_cost(text, index.cost(config)) == text, (
    "run python -m experiments.index"
  )
  # It holds only what is its own.
  content = yaml.safe_load(text)
  assert content.keys() == {"task", "trainer"}
  assert content["task"].keys() <= {"sharing", "growth"}
  own = {"mode", "unit_size", "untie_fraction"}
  assert content["task"]["sharing"].keys() <= own
  assert content["trainer"].keys() == {"train_steps"}


def test_index_lists_the_rows():
  text = pathlib.Path(index.README).read_text()
  assert index.with_index(text, ROWS) == text, "run python -m experiments.index"


@pytest.fixture(scope="module", name="records")
def fixture_records(tmp_path_factory):
  """Shards as the headers of `experiments/data` make them."""
  folder = tmp_path_factory.mktemp("records")
  for line in (EXPERIMENTS / "data/wikibooks.yaml").read_text().splitlines():
    if line.startswith("#     --"):
      assert line.split()[1:] == ["--seq_length=512", "--fresh_masks"]
  vocab_file = corpus.write(folder, text=corpus.text(300))
  corpus.prepare(
    input=f"{folder}/text.txt",
    vocab=vocab_file,
    output_dir=f"{folder}/shards",
    seq_length=tiny.LENGTH,
    fresh_masks=True,
  )
  return f"{folder}/shards/*.tfrecord"


def reduced(records: str) -> str:
  """Returns overrides that leave the depth as it is and little else."""
  base = tiny.overrides(records)["task"]
  own = ("num_layers", "initializer_range", "dropout_rate")
  own += ("attention_dropout_rate",)
  encoder = base["model"]["encoder"]["any"]
  encoder = {name: encoder[name] for name in encoder if name not in own}
  encoder |= {"hidden_size": 16, "intermediate_size": 32, "vocab_size": 200}
  tables = {name: base[name] for name in ("train_data", "validation_data")}
  return ",".join(
    f"task.{table}.{name}={value}"
    for table, fields in (tables | {"model.encoder.any": encoder}).items()
    for name, value in fields.items()
  )


@functools.cache
def build_model(num_layers: int, overrides: str):
  """Builds the model of the first row that is this deep; reduced, all agree."""
  row = next(row for row in ROWS if step_of(row)[0] == num_layers)
  task = index.load_config(row, overrides).task
  return task_factory.get_task(task).build_model()


def step_of(row):
  """Returns what a step at reduced width depends on."""
  said = PAPER[name_of(row)]
  layers = sizes.SIZES[said.size].num_layers
  return layers, said.mode, said.unit_size


@pytest.mark.parametrize("step", sorted(set(map(step_of, ROWS))), ids=str)
def test_rows_take_a_step_at_reduced_width(step, records):
  num_layers, mode, unit_size = step
  rows = [row for row in ROWS if step_of(row) == step]
  configs = [index.load_config(row, reduced(records)) for row in rows]
  # Rows with one shape differ in nothing that a single step could see.
  assert len({repr(c.task.model.as_dict()) for c in configs}) == 1
  config = configs[0]
  model = build_model(num_layers, reduced(records))
  task = task_factory.get_task(config.task)
  how = {"model": model, "evaluate": False}
  how["optimizer"] = train_utils.create_optimizer(task, config)
  trainer = trainer_lib.SharedWeightsTrainer(config, task, **how)
  rng = np.random.default_rng(0)
  for variable in model.trainable_variables:
    variable.assign(rng.normal(scale=0.3, size=variable.shape))
  trainer.initialize()
  before = [v.numpy() for v in model.trainable_variables]
  # A step of 24 layers takes a second this way; compiling it takes ten.
  tf.config.run_functions_eagerly(True)
  try:
    logs = trainer.train(tf.constant(1))
  finally:
    tf.config.run_functions_eagerly(False)

  assert np.isfinite(logs["training_loss"])
  assert trainer.optimizer.iterations == 1
  after = model.trainable_variables
  assert any(np.any(old != new.numpy()) for old, new in zip(before, after))
  blocks = model.encoder_network.transformer_layers
  assert len(blocks) == num_layers
  distinct = unit_size if mode == "swe" else num_layers
  for role in zip(*(block.weights for block in blocks)):
    assert len({v.numpy().tobytes() for v in role}) == distinct, role[0].name


@pytest.mark.parametrize(
  "files, experiment",
  [
    (["small/24x64.yaml"], "swe/bert_pretraining"),
    (["small/24x64.yaml", "small/text.yaml"], "swe/bert_pretraining_text"),
  ],
)
def test_small_is_deep_narrow_and_consistent(files, experiment):
  paths = [str(EXPERIMENTS / name) for name in files]
  options = train_utils.ParseConfigOptions(experiment, paths)
  config = train_utils.parse_configuration(options, print_return=False)
  encoder = config.task.model.encoder.get()
  assert encoder.num_layers == 24
  assert encoder.norm_first
  assert encoder.initializer_range == encoder.hidden_size**-0.5
  assert config.task.model.mlm_initializer_range == encoder.initializer_range
  for data in (config.task.train_data, config.task.validation_data):
    assert data.seq_length == encoder.max_position_embeddings
    assert data.max_predictions_per_seq == budget.max_predictions(
      data.seq_length, 0.32
    )
    if files[1:]:
      assert data.masking_rate == 0.32
  for name in ("characters.txt", "pieces.txt"):
    tokens = vocab.Vocabulary.load(str(EXPERIMENTS / "small" / name)).tokens
    assert len(tokens) <= encoder.vocab_size


def test_factory_and_files_agree_on_bert_large():
  row = next(r for r in ROWS if name_of(r) == "table1/large_500k_swe")
  config = index.load_config(row)
  default = exp_factory.get_exp_config("swe/bert_pretraining_text")
  default.validate()
  assert config.task.model.as_dict() == default.task.model.as_dict()
  assert config.trainer.as_dict() == default.trainer.as_dict()


STUDIES = sorted((EXPERIMENTS / "studies").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_run_of_a_study_has_a_config(path):
  study = study_file.read_study(str(path))
  for run in study.runs:
    config = experiments.make_config(study, run)
    decay = config.trainer.optimizer_config.learning_rate.polynomial
    assert decay.decay_steps + decay.offset == config.trainer.train_steps
    assert decay.end_learning_rate == 0.0


def test_studies_of_the_paper_have_a_twin_that_asks_the_same():
  names = {path.stem for path in STUDIES}
  twins = {name for name in names if name.startswith("small_")}
  assert len(twins) >= 6
  # The full size of Table 1 is its rows, not a study.
  for twin in twins - {"small_table1"}:
    small, large = (
      study_file.read_study(str(EXPERIMENTS / "studies" / f"{name}.yaml"))
      for name in (twin, twin.removeprefix("small_"))
    )
    assert large.experiment == "swe/bert_pretraining_text"
    (axes,) = {frozenset(run.point) - {"steps"} for run in small.runs[-1:]}
    assert axes <= {axis for run in large.runs for axis in run.point}


def test_wider_models_of_table_2_are_those_of_the_paper():
  path = EXPERIMENTS / "studies" / "table2_widths.yaml"
  study = study_file.read_study(str(path))
  for run in study.runs:
    encoder = experiments.make_config(study, run).task.model.encoder.get()
    assert encoder.as_dict().items() >= size_of(f"24x{run.point['width']}")
