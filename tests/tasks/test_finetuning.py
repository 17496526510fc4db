"""`swe/glue` and `swe/squad`: what follows from data and checkpoint."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official.core import exp_factory
from official.core import task_factory
from official.core import train_utils
from official.modeling import hyperparams
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf.data.prepare import manifest
from tests import tiny
from tests.studies.finetune import samples

_YAMLS = pathlib.Path(__file__).parents[2] / "experiments" / "finetuning"


@pytest.fixture(scope="module", name="pretrained")
def fixture_pretrained(tmp_path_factory):
  """A pre-training run with a checkpoint of each phase: steps 3 and 12."""
  folder = tmp_path_factory.mktemp("pretrained")
  config = tiny.config_of(tiny.written(folder), {"trainer": {"max_to_keep": 9}})
  runner = tiny.make_runner(config, folder / "run")
  train_utils.serialize_config(config, str(folder / "run"))
  encoders = {}
  for step in (3, tiny.STEPS):
    runner.controller.train(step)
    network = runner.trainer.model.encoder_network
    encoders[step] = [variable.numpy() for variable in network.variables]
  return folder / "run", encoders


@pytest.fixture(scope="module", name="data_dir")
def fixture_data_dir(tmp_path_factory):
  """Made sentences with the vocabulary size of the pre-trained model."""
  sizes = {"max_seq_length": tiny.LENGTH, "vocab_size": tiny.VOCAB}
  folder = tmp_path_factory.mktemp("sst")
  return samples.write_data("SST-2", folder, **sizes)


def _config(data_dir, experiment="swe/glue", batch_size=None, **task):
  config = exp_factory.get_exp_config(experiment)
  config.override({"task": {"data_dir": data_dir, **task}})
  if batch_size:
    config.task.train_data.global_batch_size = batch_size
  config.validate()
  return config


@pytest.mark.parametrize("step", [3, tiny.STEPS])
def test_starts_from_the_encoder_of_either_phase(pretrained, data_dir, step):
  run, encoders = pretrained
  config = _config(data_dir, init_checkpoint=str(run / f"ckpt-{step}"))
  assert config.task.model.encoder.any.hidden_size == 8
  heads = []
  for seed in (0, 0, 1):
    task = task_factory.get_task(config.task.replace(seed=seed))
    model = task.build_model()
    task.initialize(model)
    encoder = model.checkpoint_items["encoder"]
    for ours, theirs in zip(encoder.variables, encoders[step], strict=True):
      np.testing.assert_array_equal(ours.numpy(), theirs)
    heads.append(model.classifier.variables[0].numpy())
  np.testing.assert_array_equal(heads[0], heads[1])
  assert not np.allclose(heads[0], heads[2])


def test_fine_tuning_unties_what_was_shared(pretrained, data_dir):
  run, encoders = pretrained
  config = _config(data_dir, init_checkpoint=str(run / "ckpt-3"), epochs=1.0)
  assert not hasattr(config.task, "sharing")
  runner = tiny.make_runner(config, str(run.parent / "tuned"))
  encoder = runner.trainer.model.checkpoint_items["encoder"]
  first, second = encoder.transformer_layers
  pairs = list(zip(first.trainable_variables, second.trainable_variables))
  assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)
  runner.controller.train(config.trainer.train_steps)
  assert not any(
    np.array_equal(a.numpy(), b.numpy()) for a, b in pairs if "kernel" in a.name
  )


def test_steps_and_schedule_follow_the_number_of_examples(pretrained, data_dir):
  run, _ = pretrained
  config = _config(data_dir, batch_size=2, init_checkpoint=str(run))
  assert config.trainer.train_steps == 3 * samples.COUNT // 2 == 96
  optimizer = train_utils.create_optimizer(
    task_factory.get_task(config.task), config
  )
  rates = [float(optimizer.learning_rate(step)) for step in range(97)]
  peak, warmup = 3e-5, 10
  expected = [
    peak * min(step / warmup, (96 - step) / (96 - warmup)) for step in range(97)
  ]
  # Model Garden takes step 1's rate for step 0, which does no harm.
  np.testing.assert_allclose(rates[1:], expected[1:], rtol=1e-4, atol=1e-12)
  config.validate()  # What is set stays.
  assert config.trainer.train_steps == 96
  fewer = _config(data_dir, init_checkpoint=str(run), max_train_examples=32)
  assert fewer.trainer.train_steps == 3


def _ids(dataset, count):
  return np.concatenate([x["input_word_ids"] for x in dataset.take(count)])


def test_input_starts_at_any_step_and_honours_the_limit(pretrained, data_dir):
  run, _ = pretrained
  some = {"init_checkpoint": str(run), "max_train_examples": 24}
  config = _config(data_dir, batch_size=8, **some)
  task = task_factory.get_task(config.task)
  params = config.task.train_data
  straight = _ids(task.build_inputs(params), 9)
  resumed = _ids(task.build_inputs(params, start_step=4), 5)
  np.testing.assert_array_equal(straight[4 * 8 :], resumed)
  passes = straight.reshape([3, 24, -1])
  assert len(np.unique(passes[0], axis=0)) == 24
  assert len(np.unique(straight, axis=0)) == 24
  assert not np.array_equal(passes[0], passes[1])


def _refused(message, *call, **task):
  with pytest.raises(errors.UsageError, match=message):
    _config(*call, **task)


def test_data_that_does_not_fit_is_refused(pretrained, data_dir, tmp_path):
  run, _ = pretrained
  places = []
  for lengths in (
    dict(max_seq_length=tiny.LENGTH),
    dict(max_seq_length=17, vocab_size=tiny.VOCAB),
  ):
    folder = tmp_path / str(len(places))
    folder.mkdir()
    places.append(samples.write_data("SST-2", folder, **lengths))
  other, long = places
  start = {"init_checkpoint": str(run)}
  _refused("vocabulary of 45 tokens.* 50", other, **start)
  _refused("17, but .* only 16 positions", long, **start)
  _refused("has no manifest.json", str(tmp_path))
  _refused("data_dir has no manifest.json", "")
  _refused("needs SQuAD", data_dir, "swe/squad")
  _refused("no split 'test' with labels", data_dir, eval_split="test")
  # With the vocabulary at hand, its tokens count and not only their number.
  encoder = pathlib.Path(samples.write_encoder(tmp_path / "e", data_dir))
  start = {"init_checkpoint": str(encoder)}
  _config(data_dir, **start)
  text = (encoder / "vocab.txt").read_text()
  (encoder / "vocab.txt").write_text(text.replace("\nba\n", "\nxx\n"))
  _refused("manifest.json.*another vocabulary", data_dir, **start)


def test_checkpoint_of_another_size_is_refused(data_dir, tmp_path):
  encoder = pathlib.Path(samples.write_encoder(tmp_path / "e", data_dir))
  path = encoder / "encoder.yaml"
  path.write_text(path.read_text().replace("num_layers: 2", "num_layers: 3"))
  config = _config(data_dir, init_checkpoint=str(encoder))
  task = task_factory.get_task(config.task)
  with pytest.raises(errors.UsageError, match="different architecture"):
    task.initialize(task.build_model())
  _refused("no checkpoint at", data_dir, init_checkpoint=str(tmp_path))


@pytest.mark.parametrize(
  "path", sorted(_YAMLS.glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_yaml_is_a_whole_experiment(path, tmp_path):
  name = yaml.safe_load(path.read_text())["task"]["data_dir"].split("/")[-1]
  is_squad = name.startswith("squad")
  config = exp_factory.get_exp_config("swe/squad" if is_squad else "swe/glue")
  config = hyperparams.override_params_dict(config, str(path), is_strict=True)
  config.task.data_dir = samples.write_data(
    name, tmp_path, count=8, max_seq_length=64
  )
  config.validate()
  data = manifest.read(config.task.data_dir)
  assert data.task == name
  if not is_squad:
    assert config.task.model.num_classes == (len(data.meta["labels"]) or 1)
  assert tf.io.gfile.exists(config.task.validation_data.input_path)
