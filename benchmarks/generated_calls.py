"""Calls with input that nobody thought of, by class; for `bad_input.py`.

Each class is a hypothesis strategy of `Call`s: a sound file of a kind is
changed in one or two places, as a document (a value replaced, lost or added) or
as text (cut, doubled, bytes inserted), and given to the commands that read it.
Most calls are wrong; any may be right.
"""

from collections.abc import Iterator, Mapping
import copy
import dataclasses
import json
import pathlib
from typing import Any

from hypothesis import strategies as st
import yaml

from benchmarks import bad_calls
from swe_tf.data.glue import tasks as glue_tasks
from tests.analysis import fake_runs


@dataclasses.dataclass(frozen=True)
class Call:
  """A command line after `swe`, and the files that it reads, by name."""

  arguments: tuple[str, ...]
  files: Mapping[str, bytes] = dataclasses.field(default_factory=dict)


_WORDS = (
  "",
  " ",
  "swe",
  "off",
  "1e3",
  "a/b",
  "..",
  "/dev/null",
  "\0",
  "é",
  "[",
)
_NUMBERS = (-1, 0, 1, 2, 3, 7, 10**6, 10**9, 2**31, 2**63, 10**20, 10**400)
_junk_plain = (
  st.none()
  | st.booleans()
  | st.sampled_from(_NUMBERS)
  | st.floats()
  | st.sampled_from(_WORDS)
  | st.text(max_size=4)
)
_junk = st.recursive(
  _junk_plain,
  lambda inner: (
    st.lists(inner, max_size=2)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2)
  ),
  max_leaves=3,
)
_junk_bytes = st.sampled_from(
  (b"\0", b"\xff", b"\xef\xbb\xbf", b"\t", b"\n", b"\r", b"{", b"[" * 3000)
  + (b'"', b"'", b"&a ", b"*a", b"!!bool ", b": ", b"- ", b"9" * 5000, b"NaN")
)


def _places(document: Any, path: tuple = ()) -> Iterator[tuple]:
  """Yields the path of every value in a document."""
  items: Any = ()
  if isinstance(document, dict):
    items = document.items()
  elif isinstance(document, list):
    items = enumerate(document)
  for key, value in items:
    yield (*path, key)
    yield from _places(value, (*path, key))


@st.composite
def _changed(draw, document: Any) -> Any:
  """Returns a document with a value or two replaced, lost or added."""
  document = copy.deepcopy(document)
  for _ in range(draw(st.integers(0, 2))):
    places = list(_places(document))
    if not places:
      break
    *path, last = draw(st.sampled_from(places))
    holder = document
    for key in path:
      holder = holder[key]
    how = draw(st.sampled_from(("replace", "replace", "lose", "add")))
    if how == "replace":
      holder[last] = draw(_junk)
    elif how == "lose":
      del holder[last]
    elif isinstance(holder, list):
      holder.append(draw(st.sampled_from(holder) | _junk))
    else:
      holder[draw(st.sampled_from(_WORDS))] = draw(_junk)
  return document


@st.composite
def _damaged(draw, text: str) -> bytes:
  """Returns text as bytes: one in four is cut, doubled or has junk in it."""
  data = text.encode("utf-8", "surrogatepass")
  if draw(st.integers(0, 3)):
    return data
  at, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
  how = draw(st.sampled_from(("cut", "insert", "insert", "lose", "double")))
  if how == "cut":
    return data[:at]
  if how == "insert":
    return data[:at] + draw(_junk_bytes) + data[at:]
  return data[:at] + data[end if how == "lose" else at - (end - at) :]


@st.composite
def _json(draw, document: Any) -> bytes:
  return draw(_damaged(json.dumps(draw(_changed(document)))))


@st.composite
def _yaml(draw, document: Any) -> bytes:
  changed = draw(_changed(document))
  return draw(_damaged(yaml.safe_dump(changed, allow_unicode=True)))


_TEXT = "the cat sat on the cat"


def _squad(version: str) -> dict[str, Any]:
  answer = {"text": "cat", "answer_start": 4}
  questions: list[dict[str, Any]] = [
    {"id": name, "question": "the cat on?", "answers": [dict(answer)]}
    for name in ("1", "2")
  ]
  if version == "2.0":
    questions[0]["is_impossible"] = False
    questions[1] |= {"is_impossible": True, "answers": []}
  paragraph = {"context": _TEXT, "qas": questions}
  return {"data": [{"title": "t", "paragraphs": [paragraph]}]}


@st.composite
def squad_files(draw) -> Call:
  version = draw(st.sampled_from(("1.1", "2.0")))
  content = draw(_json(_squad(version)))
  common = (f"--version={version}",)
  if draw(st.booleans()):
    arguments: tuple[str, ...] = (
      *("prepare", "squad", "--input=x.json", "--vocab=vocab.txt"),
      *("--max_seq_length=32", "--max_query_length=8", "--output_dir=out"),
      *(f"--split={draw(st.sampled_from(('train', 'eval')))}", *common),
    )
  else:
    answers = "--predictions=squad_predictions.json"
    arguments = ("score", "squad", "--data=x.json", answers, *common)
  return Call(arguments, {"x.json": content})


@st.composite
def _glue(draw, task: glue_tasks.GlueTask) -> tuple[str, bytes]:
  """Returns the name and the content of a GLUE file."""
  columns = [
    draw(st.sampled_from(names)) for names in (*task.texts, task.label)
  ]
  label = task.labels[0] if task.labels else "2.5"
  row = [*[_TEXT] * len(task.texts), label]
  if draw(st.booleans()):
    rows = draw(_changed([dict(zip(columns, row))] * 3))
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    return "dev.jsonl", draw(_damaged(text))
  cells = draw(_changed([columns, row, row, row]))
  lines = [
    "\t".join(map(str, row if isinstance(row, list) else [row]))
    for row in cells
  ]
  return "dev.tsv", draw(_damaged("".join(f"{line}\n" for line in lines)))


@st.composite
def glue_files(draw) -> Call:
  task = draw(st.sampled_from(list(glue_tasks.TASKS.values())))
  name, content = draw(_glue(task))
  label = task.labels[0] if task.labels else "2.5"
  rows = "".join(f"{i}\t{label}\n" for i in range(3))
  arguments: tuple[str, ...] = (
    *("prepare", "glue", f"--task={task.name}", "--input_dir=glue_in"),
    *("--vocab=vocab.txt", "--output_dir=out"),
  )
  if draw(st.booleans()):
    arguments = (
      *("score", "glue", f"--task={task.name}", f"--data=glue_in/{name}"),
      "--predictions=p.tsv",
    )
  predictions = f"index\tprediction\n{rows}".encode()
  return Call(arguments, {f"glue_in/{name}": content, "p.tsv": predictions})


@st.composite
def predictions(draw) -> Call:
  if draw(st.booleans()):
    lines = draw(
      _changed([["index", "prediction"], *[[i, 1] for i in range(3)]])
    )
    text = "\n".join(
      "\t".join(map(str, line)) if isinstance(line, list) else str(line)
      for line in lines
    )
    content = draw(_damaged(f"{text}\n"))
    arguments: tuple[str, ...] = (
      *("score", "glue", "--task=SST-2", "--data=three.tsv"),
      "--predictions=p.tsv",
    )
    return Call(arguments, {"p.tsv": content})
  version = draw(st.sampled_from(("1.1", "2.0")))
  found = {"p.json": draw(_json({"1": "cat", "2": ""}))}
  arguments = (
    *("score", "squad", f"--version={version}", "--predictions=p.json"),
    f"--data=squad{version}.json",
  )
  if draw(st.booleans()):
    found["na.json"] = draw(_json({"1": 0.25, "2": 1.5}))
    arguments += ("--na_probs=na.json",)
  if draw(st.booleans()):
    arguments += (f"--na_prob_threshold={draw(_junk_plain)}",)
  return Call(arguments, found)


_ENCODER = bad_calls.TINY["task"]["model"]["encoder"]["any"]
# Random tokens instead of files: there is nothing to read.
_DUMMY = {"input_path": "dummy", "global_batch_size": 8, "seq_length": 16}
CONFIG: dict[str, Any] = {
  "task": {
    "model": {"encoder": {"type": "any", "any": dict(_ENCODER)}},
    "train_data": {**_DUMMY, "max_predictions_per_seq": 3},
    "validation_data": {**_DUMMY, "max_predictions_per_seq": 3},
    "sharing": {"mode": "swe", "unit_size": 1, "untie_fraction": 0.5},
    "seed": 1,
  },
  "runtime": {"distribution_strategy": "off"},
  "trainer": {
    **bad_calls.TINY["trainer"],
    "optimizer_config": {
      "optimizer": {"type": "adamw", "adamw": {"epsilon": 1e-6}},
      "learning_rate": {
        "type": "polynomial",
        "polynomial": {"initial_learning_rate": 1e-3, "decay_steps": 10},
      },
    },
  },
}


def _fields() -> list[str]:
  """Returns the dotted names of all fields of a pre-training experiment."""
  from official.core import exp_factory
  from swe_tf import registry  # noqa: F401 (registers)

  content = exp_factory.get_exp_config("swe/bert_pretraining").as_dict()
  names = [".".join(map(str, place)) for place in _places(content)]
  # Sizes below the bounds are possible, and fill the memory.
  return [name for name in names if not name.endswith(".0")]


@st.composite
def fields(draw) -> Call:
  """Overrides, as text or as a file, of any fields of an experiment."""
  command = draw(st.sampled_from(("train", "train", "doctor", "doctor cost")))
  arguments = [*command.split(), "--experiment=swe/bert_pretraining"]
  if command == "train":
    arguments += ["--mode=train", "--model_dir=out"]
  content = draw(_yaml(CONFIG)) if draw(st.booleans()) else None
  name = "dummy.yaml" if content is None else "x.yaml"
  arguments.append(f"--config_file={name}")
  if content is None:
    names = draw(st.lists(st.sampled_from(_fields()), min_size=1, max_size=2))
    values = [draw(_junk_plain | st.lists(_junk_plain)) for _ in names]
    pairs = zip(names, map(json.dumps, values))
    text = ",".join(f"{name}={value}" for name, value in pairs)
    arguments.append(
      f"--params_override={draw(_damaged(text)).decode('latin')}"
    )
  return Call(tuple(arguments), {} if content is None else {name: content})


_STUDY = {
  "experiment": "swe/bert_pretraining",
  "config_files": ["dummy.yaml"],
  "overrides": {"trainer": {"train_steps": 10}},
  "metrics": ["validation_loss"],
  "axes": {
    "method": ["baseline", "swe"],
    "units": ["1x4", 2],
    "tau": [0.5, "25%"],
    "learning_rate": [1e-3],
    "seed": [0, 1],
    "own": {"a": {"task": {"seed": 1}}, "b": None},
  },
}
_TUNING = {
  "arms": {"a": {"task": {"sharing": {"mode": "none"}}}, "b": {}},
  "learning_rates": [1e-4, 1e-3, 1e-2],
  "seeds": [0, 1],
}


@st.composite
def studies(draw) -> Call:
  study: dict[str, Any] = dict(_STUDY)
  if not draw(st.integers(0, 3)):
    del study["axes"]
    study["tuning"] = _TUNING
  content = draw(_yaml(study))
  arguments = ("sweep", "x.yaml", "--output_dir=out", "--dry_run")
  return Call(arguments, {"x.yaml": content})


_RUN_FILES: dict[str, Any] = {
  "run.json": {"axes": {"method": "swe", "seed": 0}, "name": "r"},
  "result.json": {"status": "finished", "seconds": 5.0, "metrics": {}},
  "accepted_changes.json": [],
  "../study.json": {"unigram_entropy": 2.5, "runs": {}},
  "selection.json": {"task": "SST-2", "best": "r", "scores": {}},
  "study.json": {"settings": {"init": "given"}, "checkpoint": "runs/a/ckpt-10"},
  "column.json": {"checkpoint": "runs/a/ckpt-10", "init": "x", "scores": {}},
}


@st.composite
def run_directories(draw) -> Call:
  found = {"runs/b/params.yaml": draw(_yaml(CONFIG))}
  for name in draw(st.lists(st.sampled_from(list(_RUN_FILES)), max_size=2)):
    place = "runs/study.json" if name.startswith("..") else f"runs/b/{name}"
    found[place] = draw(_json(_RUN_FILES[name]))
  if draw(st.booleans()):
    part = draw(st.sampled_from(("train", "validation")))
    events = draw(st.binary(max_size=40) | st.just(b""))
    found[f"runs/b/{part}/events.out.tfevents.0"] = events
  arguments = draw(
    st.sampled_from(
      (
        ("report", "--runs=runs", "--output_dir=out"),
        ("diff", "runs/a", "runs/b"),
        ("submission", "--runs=runs", "--output=out"),
      )
    )
  )
  return Call(arguments, found)


_MANIFEST = {
  "kind": "glue",
  "format_version": 2,
  "task": "SST-2",
  "vocab_size": len(bad_calls.TOKENS),
  "vocab_sha256": "0",
  "do_lower_case": True,
  "max_seq_length": 16,
  "num_labels": 2,
  "metric_type": "accuracy",
  "label_type": "int",
  "splits": {
    "train": {"file": "train.tf_record", "size": 4, "labelled": True},
    "dev": {"file": "dev.tf_record", "size": 4, "labelled": True},
  },
}


@st.composite
def prepared_data(draw) -> Call:
  """Manifests of prepared GLUE data."""
  found = {"data/manifest.json": draw(_json(_MANIFEST))}
  for name in ("train", "dev"):
    found[f"data/{name}.tf_record"] = b""
  arguments = ["--experiment=swe/glue", "--params_override=task.data_dir=data"]
  if draw(st.booleans()):
    return Call(("doctor", *arguments), found)
  train = ("train", *arguments, "--mode=train", "--model_dir=out")
  return Call(train, found)


_INDEX = "model.safetensors.index.json"
_HUGGING_FACE: dict[str, Any] = {
  _INDEX: {"weight_map": {"a": "b.safetensors"}},
  "config.json": {
    "model_type": "roberta-prelayernorm",
    **{name: _ENCODER[name] for name in ("vocab_size", "hidden_size")},
    "num_hidden_layers": _ENCODER["num_layers"],
    "num_attention_heads": _ENCODER["num_attention_heads"],
    "intermediate_size": _ENCODER["intermediate_size"],
    "max_position_embeddings": _ENCODER["max_position_embeddings"] + 1,
    "type_vocab_size": 2,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
  },
}


@st.composite
def hugging_face(draw) -> Call:
  name = draw(st.sampled_from(("config.json", "config.json", _INDEX)))
  content = draw(_json(_HUGGING_FACE[name]))
  arguments = ("import", "--input_dir=bert", "--output_dir=out")
  return Call(arguments, {f"bert/{name}": content})


def _write_bert(directory: pathlib.Path) -> None:
  from swe_tf.convert import huggingface
  from swe_tf.modeling import checkpoint_files
  from swe_tf.modeling import registry

  encoder = registry.bert(dict(_ENCODER), "any")
  vocabulary = directory / "vocab.txt"
  vocabulary.write_text("".join(f"{token}\n" for token in bad_calls.TOKENS))
  loaded = checkpoint_files.LoadedEncoder(encoder.build(), encoder, None)
  huggingface.write_huggingface(directory, loaded)


CLASSES = {
  "fields": fields,
  "studies": studies,
  "squad_files": squad_files,
  "glue_files": glue_files,
  "predictions": predictions,
  "run_directories": run_directories,
  "prepared_data": prepared_data,
  "hugging_face": hugging_face,
}


def write_files(directory: pathlib.Path) -> None:
  """Writes the sound files beside which those of a call stand."""
  bad_calls.write_files(directory)
  rows = "the cat\t1\n" * 3
  texts = {
    "dummy.yaml": yaml.safe_dump(CONFIG),
    "three.tsv": f"sentence\tlabel\n{rows}",
    "squad_predictions.json": json.dumps({"1": "cat", "2": ""}),
    **{f"squad{v}.json": json.dumps(_squad(v)) for v in ("1.1", "2.0")},
  }
  for name, text in texts.items():
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
  fake_runs.write_run(directory / "runs" / "a", CONFIG, 3.0)
  (directory / "bert").mkdir()
  _write_bert(directory / "bert")
