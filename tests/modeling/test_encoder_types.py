"""docs/encoders.md: every type of Model Garden shares, or says why not."""

import dataclasses
import pathlib

import gin
import numpy as np
import pytest
import tensorflow as tf

from official.core import exp_factory
from official.nlp.configs import encoders
from official.nlp.configs import pretraining_experiments  # noqa: F401
from official.nlp.tasks import masked_lm
from swe_tf import errors
from swe_tf import yaml_files
from swe_tf.commands import stock_options
from swe_tf.configs import cost
from swe_tf.doctor import checks
from swe_tf.methods import gin_bindings
from swe_tf.methods import plans
from swe_tf.modeling import registry
from swe_tf.tasks import masked_lm as shared_lm
from swe_tf.training import runner
from tests import tiny

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "encoders.md"
_TYPES = [field.name for field in dataclasses.fields(encoders.EncoderConfig)]
_TYPES.remove("type")
# The names that the types have for the same.
_TINY = {
  **dict.fromkeys(("vocab_size", "word_vocab_size"), tiny.VOCAB),
  **dict.fromkeys(("hidden_size", "embedding_width", "word_embed_size"), 8),
  **dict.fromkeys(("num_layers", "num_blocks"), 4),
  **dict.fromkeys(("intermediate_size", "inner_dim", "inner_size"), 16),
  **dict.fromkeys(("num_attention_heads", "num_experts"), 2),
  **dict.fromkeys(
    ("max_position_embeddings", "max_sequence_length"), tiny.LENGTH
  ),
  **dict.fromkeys(("intra_bottleneck_size", "num_random_features"), 8),
  "head_size": 4,
  "block_size": 2,
  "num_rand_blocks": 1,
}
# What to write, from the page.
_ROWS = {
  row[1].strip(" `"): row[2:4]
  for line in _PAGE.read_text(encoding="utf-8").splitlines()
  if line.startswith("| `")
  for row in [line.split("|")]
}
_WORKS = [kind for kind in _ROWS if _ROWS[kind][0].strip() == "yes"]


def _written(kind):
  """Returns the fields that the page says to set."""
  cell = _ROWS[kind][1].strip(" `")
  pairs = [each.split("=") for each in cell.split(", ") if "=" in each]
  return {name: yaml_files.parse(value, _PAGE) for name, value in pairs}


def _encoder(kind, **fields):
  config = encoders.EncoderConfig(type=kind)
  own = registry.bert({}).config.any if kind == "any" else getattr(config, kind)
  fields = {k: v for k, v in _TINY.items() if hasattr(own, k)} | fields
  return {"model": {"encoder": {"type": kind, kind: fields}}}


def _config(records, kind, fields, **sharing):
  base = tiny.overrides(records)
  base["task"] |= _encoder(kind, **fields)
  base["task"]["sharing"] = {"untie_step": 2} | sharing
  return tiny.config_of(base, {"trainer": tiny.every(1, train_steps=3)})


@pytest.fixture(scope="module", name="records")
def _records(tmp_path_factory):
  return tiny.write_records(str(tmp_path_factory.mktemp("records")))


@pytest.fixture(autouse=True)
def _without_bindings():
  yield
  gin.clear_config()


def test_the_page_has_every_type():
  assert sorted(_ROWS) == sorted(_TYPES)
  with pytest.raises(errors.UsageError) as info:
    tiny.config_of({"task": {"model": {"encoder": {"type": "nosuch"}}}})
  listed = str(info.value).partition("one of ")[2].partition(";")[0]
  assert sorted(listed.split(", ")) == sorted(_WORKS)


@pytest.mark.parametrize(
  "kind",
  [
    kind if kind == "fnet" else pytest.param(kind, marks=pytest.mark.slow)
    for kind in _WORKS
  ],
)
def test_a_type_that_works_is_tied_and_then_untied(kind, records, tmp_path):
  config = _config(records, kind, _written(kind))
  trainer = tiny.train(config, tmp_path, 2)
  blocks = registry.blocks_of(trainer.model)
  assert len(blocks) == 4
  columns = list(zip(*(block.trainable_variables for block in blocks)))
  for stem, *branches in columns:
    for branch in branches:
      np.testing.assert_array_equal(stem, branch)
  start = [stem.numpy() for stem, *_ in columns]
  with trainer.strategy.scope():
    trainer.train(tf.constant(1))
  assert trainer.phase == "unshared"
  moved = [np.any(stem != was) for (stem, *_), was in zip(columns, start)]
  assert any(moved)
  assert any(np.any(stem != last.numpy()) for stem, *_, last in columns)


@pytest.mark.parametrize(
  "kind, fields, message",
  [
    ("albert", {}, "nothing to untie"),
    ("xlnet", {}, "no masked LM in Model Garden"),
    ("query_bert", {}, "without embedding_size; set it"),
    ("reuse", {}, "set reuse_attention=0"),
    ("funnel", {}, "set pool_stride=1"),
    ("fnet", {"attention_layers": [3]}, r"set attention_layers=\[\]"),
    ("sparse_mixer", {"attention_layers": []}, r"set moe_layers=\[\]"),
    ("fnet", {"max_sequence_length": 32}, "takes one length only"),
  ],
)
def test_a_type_that_does_not_is_refused_in_one_line(kind, fields, message):
  with pytest.raises(errors.UsageError, match=message) as info:
    _config("unused", kind, fields)
  assert "\n" not in str(info.value)
  if kind != "xlnet" and "length" not in message:  # The baseline shares none.
    _config("unused", kind, fields, mode="none")


def test_units_of_unlike_blocks_that_repeat():
  _config("unused", "fnet", {"attention_layers": [1, 3]}, unit_size=2)


def _stock(records, *layers, kind="bert"):
  config = exp_factory.get_exp_config("bert/pretraining")
  made = tiny.overrides(records)
  made["task"] |= _encoder(kind, dropout_rate=0.0, attention_dropout_rate=0.0)
  del made["task"]["sharing"]
  warmup = {"warmup": {"polynomial": {"power": 1, "warmup_steps": 1}}}
  decay = {"learning_rate": {"polynomial": {"decay_steps": 4}}}
  made["trainer"]["optimizer_config"] = warmup | decay
  for layer in (made, {"trainer": tiny.every(1, train_steps=4)}, *layers):
    config.override(layer, is_strict=True)
  return config


def test_a_task_without_a_config_builds_models():
  config = _config("unused", "any", {}).task.model
  model = shared_lm.SharedMaskedLMTask(None).build_model(config)
  assert len(registry.blocks_of(model)) == 4


@pytest.mark.parametrize("kind", ["bert", "bert_v2"])
def test_stock_pretraining_with_a_recipe_by_one_gin_file(
  kind, records, tmp_path, capsys
):
  gin.parse_config_files_and_bindings(
    [f"gin/{name}.gin" for name in ("stock", "one_loop")], []
  )
  config = _stock(records, kind=kind)
  method = gin_bindings.share_blocks
  made = runner.make_runner(config, str(tmp_path), mode="train", method=method)
  trainer = made.trainer
  assert "as 1x4, 1 loops until step 2 of 4" in capsys.readouterr().out
  with made.strategy.scope():
    made.controller.train(1)
    # One layer is applied, and the updates of all are those of the stem.
    applied = registry.blocks_of(trainer.model)
    (stem,), blocks = applied, registry.blocks_of(trainer._model)
    assert stem is blocks[0] and len(blocks) == 4
    made.controller.train(3)
  assert trainer.model is trainer._model
  assert np.any(blocks[0].get_weights()[0] != blocks[3].get_weights()[0])


def test_doctor_and_cost_take_a_stock_experiment():
  prefix = "trainer.optimizer_config"
  steps = {"warmup": "warmup_steps=1", "learning_rate": "decay_steps=10"}
  schedule = [f"{prefix}.{k}.polynomial.{v}" for k, v in steps.items()]

  def read(*gin_files, must_share=False, overrides=schedule):
    gin.clear_config()
    flags = stock_options.StockOptions(
      experiment="bert/pretraining",
      gin_file=tuple(f"gin/{name}.gin" for name in gin_files),
      params_override=",".join(["trainer.train_steps=10", *overrides]),
    )
    return stock_options.read_config(flags, must_share)

  assert not hasattr(read().task, "sharing")
  with pytest.raises(errors.UsageError, match="gin_file=gin/stock.gin"):
    read(must_share=True)
  for overrides, message in (
    ([], "decay_steps is not set"),
    (["trainer.train_step=1"], "did you mean train_steps?"),
    (["task.sharing.unit_size=2"], "gin_params='sharing.unit_size = 2'"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      read(overrides=overrides)
  config = read("stock", "one_loop", must_share=True)
  found = {
    name: (verdict, text) for name, verdict, text in checks.run(config, None)
  }
  assert {verdict for verdict, _ in found.values()} == {"ok"}, found
  assert "5 steps shared, 1 loops" in found["model"][1]
  assert cost.estimate(config).shared_steps == 5
  stock = read()
  found = {name: rest for name, *rest in checks.run(stock, None)}
  assert found["model"][0] == "warn" and "gin/stock.gin" in found["model"][1]
  with pytest.raises(errors.UsageError, match="input_path is not set"):
    stock_options.check_stock(stock)
  gin.parse_config_files_and_bindings(
    ["gin/stock.gin"], ["sharing.unit_size = 5"]
  )
  with pytest.raises(errors.UsageError, match="unit_size"):
    stock_options.check_stock(stock)


def test_a_shallow_view_of_a_keras_graph_computes_with_its_layers():
  task = masked_lm.MaskedLMTask(_stock("unused").task)
  model = task.build_model()
  view = plans.view_of(model, [0], plans.encoder_builder(task))
  ids = tf.constant(np.random.default_rng(0).integers(5, 50, (2, 16)))
  x = {
    "input_word_ids": ids,
    "input_mask": tf.ones_like(ids),
    "input_type_ids": tf.zeros_like(ids),
    "masked_lm_positions": tf.constant([[1, 5, 7]] * 2),
  }
  first = view(x)["mlm_logits"]
  known = {id(v) for v in model.trainable_variables}
  assert all(id(v) in known for v in view.trainable_variables)
  # Blocks whose output projections are zero leave the residual stream, which
  # Post-LN has normalised already.
  for block in registry.blocks_of(model)[1:]:
    for v in block.trainable_variables:
      if "output" in v.name and "norm" not in v.name:
        v.assign(tf.zeros_like(v))
  np.testing.assert_allclose(first, model(x)["mlm_logits"], atol=1e-4)
