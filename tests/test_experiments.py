"""Every file of `experiments/`: the paper's numbers and the parser."""

import collections
import dataclasses
import pathlib

import numpy as np
import pytest
import yaml

from experiments import index
from official.core import exp_factory
from official.core import task_factory
from official.core import train_utils
from swe_tf.analysis import paper
from swe_tf.configs import cost
from swe_tf.data.prepare import manifest
from swe_tf.data.text import vocab
from swe_tf.modeling import sizes
from swe_tf.studies import experiments
from swe_tf.studies import study_file

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
    assert data.max_predictions_per_seq == manifest.max_predictions(
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


def test_wider_models_of_table_2_are_those_of_the_paper():
  path = EXPERIMENTS / "studies" / "table2_widths.yaml"
  study = study_file.read_study(str(path))
  for run in study.runs:
    encoder = experiments.make_config(study, run).task.model.encoder.get()
    assert encoder.as_dict().items() >= size_of(f"24x{run.point['width']}")
