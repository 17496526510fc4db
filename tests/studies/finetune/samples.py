"""64 made-up examples of any task, prepared, and encoders that learn them."""

import dataclasses
import itertools
import json
import pathlib
import random
import types

from official.nlp.tools import tokenization
from swe_tf.data.glue import examples as glue_examples
from swe_tf.data.glue import records as glue_records
from swe_tf.data.glue import tasks as glue_tasks
from swe_tf.data.prepare import manifest
from swe_tf.data.squad import questions as squad_questions
from swe_tf.data.squad import records as squad_records
from swe_tf.data.text import tokenizers
from swe_tf.data.text import vocab as vocab_lib
from swe_tf.modeling import checkpoint_files
from swe_tf.modeling import registry
from swe_tf.studies import executors
from swe_tf.studies.finetune import protocol
from swe_tf.studies.finetune import task as task_lib

COUNT = 64
LENGTH = 160
# Of an encoder that need not learn.
SMALL = dict(
  hidden_size=16, num_layers=1, num_attention_heads=2, intermediate_size=16
)

# The files of a GLUE task; all have the same examples.
_PARTS = ("matched", "mismatched")
_SPLITS = {
  "MNLI": ("train", *(f"{s}_{p}" for s in ("dev", "test") for p in _PARTS)),
  "AX": ("diagnostic",),
}


def write_data(
  name: str,
  directory: pathlib.Path,
  count: int = COUNT,
  max_seq_length: int = LENGTH,
  vocab_size: int = 0,
  max_query_length: int = 32,
  doc_stride: int = 64,
  paragraphs: list | None = None,
) -> str:
  """Prepares a task whose train and dev sets are the same examples.

  They are made up, unless `paragraphs` of SQuAD are given. Returns the data
  directory.
  """
  data_dir = directory / "data" / name
  if name.startswith("squad"):
    windows = squad_records.Windows(
      max_seq_length=max_seq_length,
      max_query_length=max_query_length,
      doc_stride=doc_stride,
    )
    paragraphs = paragraphs or _made_squad(name[-3:], count)
    _write_squad(name[-3:], directory, data_dir, paragraphs, windows)
    return str(data_dir)
  task = glue_tasks.find_task(name)
  examples = _made_glue(task, count)
  texts = itertools.chain(*(example.texts for example in examples))
  unlabelled = tuple(dataclasses.replace(each, label=None) for each in examples)
  glue_files = []
  for split in _SPLITS.get(task.name, ("train", "dev", "test")):
    labelled = not split.startswith("test")
    held = examples if labelled else unlabelled
    path = pathlib.Path(f"{split}.tsv")
    glue_files.append(glue_examples.GlueFile(path, held, 0, labelled))
  glue_records.write_glue_directory(
    glue_files,
    task,
    data_dir,
    tokenizer=_tokenizer(directory, texts, vocab_size),
    max_seq_length=max_seq_length,
  )
  return str(data_dir)


def _made_glue(task, count):
  rng = random.Random(0)
  words = [f"{a}{b}" for a in "bdfgklmn" for b in ("a", "e", "i", "o", "u")]
  num_labels = len(task.labels) or 1
  return tuple(
    glue_examples.GlueExample(
      index,
      tuple(" ".join(rng.choices(words, k=8)) for _ in task.texts),
      5 * index / count if task.is_regression else index % num_labels,
    )
    for index in range(count)
  )


def _write_squad(version, directory, data_dir, paragraphs, windows):
  path = directory / f"squad-{version}.json"
  content = {"data": [{"title": "some", "paragraphs": paragraphs}]}
  path.write_text(json.dumps(content))
  squad = squad_questions.read_squad_file(path, version)
  squad_questions.check_convertible(squad, for_training=True)
  texts = itertools.chain(*((q.text, q.context) for q in squad.questions))
  how = {"tokenizer": _tokenizer(directory, texts), "windows": windows}
  for split in ("train", "eval"):
    squad_records.write_squad_directory(squad, split, data_dir, **how)


def _made_squad(version, count):
  """Returns sentences of two facts, asked for one of them or for a third."""
  rng = random.Random(0)
  paragraphs = []
  for index in range(count):
    name, city, food = (
      f"{kind}{rng.randrange(30)}" for kind in ("person", "city", "food")
    )
    context = f"It is known that {name} lives in {city} and eats {food} ."
    kind, answer = rng.choice([("live", city), ("eat", food)])
    answers = [(answer, context.index(answer))]
    if version == "2.0" and index % 2:
      kind, answers = "sleep", []
    asked = f"Where or what does {name} {kind} ?"
    paragraphs.append(_paragraph(f"q{index}", asked, context, answers))
  return paragraphs


def _paragraph(question_id, question, context, answers):
  found = [{"text": text, "answer_start": start} for text, start in answers]
  asked = {"id": question_id, "question": question, "answers": found}
  return {"context": context, "qas": [asked | {"is_impossible": not answers}]}


def _tokenizer(directory, texts, vocab_size=0):
  """Returns a tokenizer whose vocabulary is the words of the texts.

  That of the file `own_vocab.txt` is taken instead, if there is one.
  """
  path = directory / "own_vocab.txt"
  if path.exists():
    return tokenizers.CachedTokenizer(path)
  path = directory / "vocab.txt"
  basic = tokenization.BasicTokenizer(do_lower_case=True)
  words = sorted({word for text in texts for word in basic.tokenize(text)})
  tokens = [*vocab_lib.SPECIAL_TOKENS, *words]
  tokens += [f"[unused{i}]" for i in range(vocab_size - len(tokens))]
  path.write_text("\n".join(tokens) + "\n")
  return tokenizers.CachedTokenizer(path)


def squad_logits(feature, start, end):
  """Returns what a model would say of a window."""
  return types.SimpleNamespace(
    unique_id=feature.unique_id,
    start_logits=start.tolist(),
    end_logits=end.tolist(),
  )


def make_run(
  output_dir: pathlib.Path,
  data_dir: str,
  checkpoint: str,
  learning_rate: float,
  **settings,
) -> executors.SweepRun:
  """Returns a run with seed 0, as `swe finetune` makes it, ready to train."""
  data = manifest.read(data_dir)
  plan = protocol.Plan(
    settings=protocol.Settings(
      data_dir=data_dir, checkpoint=checkpoint, **settings
    ),
    runs=protocol.plan_runs(data, [learning_rate], 1),
    output_dir=str(output_dir),
    data=data,
  )
  (run,) = task_lib.FineTuning(plan).runs
  run.begin()
  return run


def write_encoder(directory: pathlib.Path, data_dir: str, **params) -> str:
  """Writes an untrained Pre-LN encoder for some data; returns its directory."""
  vocab_file = pathlib.Path(data_dir) / "vocab.txt"
  params = {
    "vocab_size": len(vocab_lib.Vocabulary.load(str(vocab_file))),
    "hidden_size": 64,
    "num_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": LENGTH,
    # BERT's 0.02 is made for a width of 1024.
    "initializer_range": 0.1,
    "dropout_rate": 0.1,
    "attention_dropout_rate": 0.1,
    **params,
  }
  encoder = registry.bert(params)
  loaded = checkpoint_files.LoadedEncoder(encoder.build(), encoder, vocab_file)
  directory.mkdir(parents=True, exist_ok=True)
  checkpoint_files.write_encoder(directory, loaded)
  return str(directory)
