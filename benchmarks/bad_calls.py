"""Wrong calls that a new user might make, and the files that they use.

For `bad_input.py`; more wrong values of a config are refused in
`tests/configs/test_validation.py`. All paths are below the directory that
`write_files` fills.
"""

from collections.abc import Iterator
import dataclasses
import json
import pathlib
import shlex

import yaml

TOKENS = (
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "[MASK]",
  *["the", "cat", "sat", "on"],
)
_TEXT = "the cat sat on the cat\n" * 40
_TEXT_DATA = {
  "input_path": "text.txt",
  "vocab_file_path": "vocab.txt",
  "seq_length": 16,
  "global_batch_size": 8,
}
TINY = {
  "task": {
    "model": {
      "encoder": {
        "type": "any",
        "any": {
          "vocab_size": len(TOKENS),
          "hidden_size": 8,
          "num_layers": 4,
          "num_attention_heads": 2,
          "intermediate_size": 16,
          "max_position_embeddings": 16,
        },
      }
    },
    "train_data": _TEXT_DATA,
    "validation_data": _TEXT_DATA,
  },
  "runtime": {"distribution_strategy": "off"},
  "trainer": {
    "train_steps": 10,
    "steps_per_loop": 5,
    "summary_interval": 5,
    "validation_interval": 10,
    "validation_steps": 2,
  },
}
# The end of any checkpoint's index; what comes before it here is not a table.
_INDEX_END = bytes.fromhex("57fb808b247547db")


def write_files(directory: pathlib.Path) -> None:
  """Writes the files that the calls name, sound and broken."""
  tiny = yaml.safe_dump(TINY)
  study = {
    "experiment": "swe/bert_pretraining_text",
    "config_files": ["tiny.yaml"],
  }
  manifest = {
    "kind": "glue",
    "format_version": 2,
    "task": "SST-2",
    "vocab_size": len(TOKENS),
    "vocab_sha256": "0",
    "do_lower_case": True,
    "max_seq_length": 16,
    "num_labels": 2,
    "metric_type": "accuracy",
    "label_type": "int",
    "splits": {"train": {"file": "train.tf_record", "size": 4}},
  }
  squad = {
    "data": [
      {
        "title": "cat",
        "paragraphs": [
          {
            "context": "the cat sat",
            "qas": [{"id": "1", "question": "who?", "answers": []}],
          }
        ],
      }
    ]
  }
  texts = {
    "tiny.yaml": tiny,
    "list.yaml": "- task\n- trainer\n",
    "broken.yaml": "task: {sharing: [}\n",
    "word.yaml": "trainer:\n  train_steps: many\n",
    "typo.yaml": "trainer:\n  train_stepz: 10\n",
    "empty.yaml": "# nothing\n",
    "text.txt": _TEXT,
    "blank.txt": "\n\n",
    "vocab.txt": "\n".join(TOKENS) + "\n",
    "no_mask.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n",
    "twice.txt": "\n".join((*TOKENS, "cat")) + "\n",
    "many.txt": "\n".join((*TOKENS, *map(str, range(90)))) + "\n",
    "bad.gin": "sharing.unit_sise = 2\n",
    "syntax.gin": "sharing.unit_size 2\n",
    "a_file": "",
    "records/a.tfrecord": "no record at all",
    "unfinished/a.tfrecord": "",
    "unfinished/prepare.journal": "",
    "garbage/ckpt-1.index": "garbage",
    "garbage/ckpt-1.data-00000-of-00001": "garbage",
    "garbage/checkpoint": 'model_checkpoint_path: "ckpt-1"\n',
    "bare/ckpt-1.data-00000-of-00001": "",
    "run/params.yaml": tiny,
    "run/checkpoint": 'model_checkpoint_path: "ckpt-1"\n',
    "glue/train.tsv": "sentence\tlabel\nthe cat\t1\nthe sat\t0\n",
    "glue/dev.tsv": "sentence\tlabel\nthe cat\t1\n",
    "no_glue/readme": "",
    "SST-2/manifest.json": json.dumps(manifest),
    "SST-2/train.tf_record": "",
    "lost/manifest.json": json.dumps(manifest),
    "squad.json": json.dumps(squad),
    "list.json": "[]",
    "predictions.tsv": "index\tprediction\n5\t1\n",
    "huggingface/config.json": json.dumps({"model_type": "gpt2"}),
    "full/report": "mine",
    "axes.yaml": yaml.safe_dump(study | {"axes": {"units": ["3x2"]}}),
    "method.yaml": yaml.safe_dump(study | {"axes": {"method": ["swee"]}}),
    "experiment.yaml": yaml.safe_dump(
      study | {"experiment": "swe/bert_pretrain", "axes": {"seed": [0]}}
    ),
    "good.yaml": yaml.safe_dump(study | {"axes": {"seed": [0]}}),
  }
  for name, text in texts.items():
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
  (directory / "latin.txt").write_bytes("Stra\xdfe\n".encode("latin-1"))
  (directory / "binary.txt").write_bytes(b"\0\1\2")
  (directory / "cut").mkdir()
  (directory / "cut/ckpt-1.index").write_bytes(b"cut" + _INDEX_END)
  (directory / "cut/ckpt-1.data-00000-of-00001").write_bytes(b"")


@dataclasses.dataclass(frozen=True)
class Call:
  """A wrong call.

  Attributes:
    line: What the user types after `python -m`.
    says: What the error line must contain.
    is_stock: Whether it calls the stock driver, whose last line is the reason.
  """

  line: str
  says: str
  is_stock: bool = False

  @property
  def arguments(self) -> list[str]:
    return shlex.split(self.line)


_TRAIN = (
  "train --experiment=swe/bert_pretraining_text --mode=train "
  "--model_dir=model --config_file=tiny.yaml"
)
_STOCK = (
  "official.nlp.train --gin_file={root}/gin/swe.gin "
  "--experiment=swe/bert_pretraining_text --mode=train --model_dir=model "
  "--config_file=tiny.yaml --params_override="
)

_COMMANDS = {
  "experiments experiments/models/bse.yaml": "did you mean experiments/models/",
  "experiments --plugins=absent_module": "cannot be imported",
  "theory theorem9 --output_dir=out": "did you mean theorem",
  "theory all --output_dir=a_file": "is a file; name another",
}
_TRAIN_CALLS = {
  "train": "--experiment is missing",
  "train --experiment=swe/glue --mode=train": "--model_dir is missing",
  "train --experiment=swe/bert_pretrainin --mode=train --model_dir=model": (
    "did you mean swe/bert_pretraining?"
  ),
  "train --experiment=bert --mode=eval --model_dir=model": "no such exper",
  f"{_TRAIN} --mode=train_and_validate": "use train_and_eval",
  f"{_TRAIN} --mode=eval --params_override=trainer.validation_steps=0": (
    "nothing is evaluated"
  ),
  f"{_TRAIN} --param_override=x": "did you mean --params_override?",
  f"{_TRAIN} --config_file=absent.yaml": "absent.yaml: there is no such file",
  f"{_TRAIN} --config_file=experiments/model/base.yaml": (
    "did you mean experiments/models/base.yaml?"
  ),
  f"{_TRAIN} --config_file=list.yaml": "list.yaml: an experiment is a table",
  f"{_TRAIN} --config_file=broken.yaml": "broken.yaml:1: not YAML",
  f"{_TRAIN} --config_file=empty.yaml": "but it is set to nothing",
  f"{_TRAIN} --config_file=word.yaml": "('many') must be an integer.",
  f"{_TRAIN} --config_file=typo.yaml": "did you mean train_steps?",
  f"{_TRAIN} --config_file=latin.txt": "is not UTF-8",
  f"{_TRAIN} --gin_file=absent.gin": "absent.gin: there is no such file",
  f"{_TRAIN} --gin_file=gin/swee.gin": "did you mean gin/swe.gin?",
  f"{_TRAIN} --gin_file=bad.gin": "did you mean unit_size?",
  f"{_TRAIN} --gin_file=syntax.gin": "a binding is NAME.PARAMETER",
  f"{_TRAIN} --gin_params='sharng.mode = 1'": "matching 'sharng'",
  f"{_TRAIN} --gin_params=SharedWeightsTrainer.untie_rul=1": "untie_rule?",
  f"{_TRAIN} --gin_params='sharing.mode = swe'": "with text in quotes",
  f"{_TRAIN} --gin_params='sharing.unit_size = 3'": "(3) must divide",
  f"{_TRAIN} --model_dir=a_file": "a_file is a file",
  f"{_TRAIN} --model_dir=a_file/model": "a_file is a file",
  f"{_TRAIN} --model_dir=run --params_override="
  "task.model.encoder.any.hidden_size=16": "hidden_size=8, but now it is 16",
  "train --experiment=swe/glue --mode=train --model_dir=model": "data_dir",
  "train --experiment=swe/glue --mode=train --model_dir=model "
  "--params_override=task.data_dir=lost": "is not there, but",
  "train --experiment=swe/glue --mode=train --model_dir=model "
  "--params_override=task.data_dir=SST-2,task.init_checkpoint=absent": (
    "there is no checkpoint at absent"
  ),
  "train --experiment=swe/bert_pretraining --mode=train --model_dir=model": (
    "task.train_data.input_path is not set"
  ),
  "train --experiment=swe/bert_pretraining --mode=train --model_dir=model "
  "--params_override=task.train_data.input_path=unfinished/*.tfrecord": (
    "are not finished"
  ),
}
_OVERRIDES = {
  "task.train_data.input_path=text.txt,more.txt": "put a value that has commas",
  "task.train_data.masking=whole_words": "did you mean whole_word?",
  "task.train_data.tokenizer=words": "must be one of wordpiece, character",
  "task.train_data.input_path=absent.txt": "absent.txt is not there",
  "task.train_data.input_path=latin.txt": "latin.txt is not UTF-8",
  "task.train_data.input_path=binary.txt": "binary.txt is a binary file",
  "task.train_data.input_path=blank.txt": "blank.txt holds no text",
  "task.train_data.vocab_file_path=absent.txt": "cannot read absent.txt",
  "task.train_data.vocab_file_path=no_mask.txt": "has no [MASK]",
  "task.train_data.vocab_file_path=twice.txt": "twice",
  "task.train_data.vocab_file_path=many.txt": "the model has room for",
  "task.init_checkpoint=absent": "there is no checkpoint at task.init_check",
  "task.init_checkpoint=garbage": "is not the index of a checkpoint",
  "task.init_checkpoint=bare/ckpt-1": "there is no checkpoint at",
  "task.model.encoder.any.hidden_activation=geluu": "did you mean gelu?",
  "task.train_data.masking=next_token": "must be 15 with masking=next_token",
  "task.init_checkpoint=cut/ckpt-1": "cannot be read",
  "runtime.distribution_strategy=mirrored,runtime.num_gpus=64": "64",
}
_STOCK_CALLS = {
  "task.sharing.unitsize=1": "did you mean unit_size?",
  "trainer.train_steps=many": "must be an integer.",
  "task.sharing.unit_size=3": "unit_size (3) must divide",
  "runtime.distribution_strategy=mirored": "did you mean mirrored?",
}
_PLAN = "--experiment=swe/bert_pretraining_text --config_file=tiny.yaml"
_OTHERS = {
  "demo --output_dir=a_file": "a_file is a file",
  "demo --output_dir=out --params_override=task.sharing.unit_size=5": "divide",
  "demo --output_dir=out --params_override=task.seeds=5": "did you mean seed?",
  "doctor --experiment=swe/nothing": "there is no such experiment",
  "doctor --experiment=swe/squad": "data_dir",
  f"doctor {_PLAN} --params_override=task.taks=1": "has no parameter 'taks'",
  f"doctor cost {_PLAN} --params_override=task.sharing.unit_size=3": "divide",
  f"doctor tpu {_PLAN} --topology=v9:2x2": "v9",
  f"pilot {_PLAN} --output_dir=out": "give either --hours or --steps.",
  f"pilot {_PLAN} --output_dir=out --steps=5": "a pilot of 5 steps",
  f"pilot {_PLAN} --output_dir=a_file --steps=20": "a_file is a file",
  "sweep absent.yaml --output_dir=out": "cannot read absent.yaml",
  "sweep axes.yaml --output_dir=out": "units 3x2 are 6 layers",
  "sweep method.yaml --output_dir=out": "did you mean swe?",
  "sweep experiment.yaml --output_dir=out": "did you mean swe/bert",
  "sweep good.yaml --output_dir=a_file": "a_file is a file",
  "sweep good.yaml --output_dir=out --dry_run --print_commands": "only one of",
  "sweep good.yaml --output_dir=out --jobs=0": "'0' is not an integer",
  "sweep good.yaml --output_dir=out --params_override=trainer.steps=1": (
    "has no parameter 'steps'"
  ),
  "finetune --task=SST-2 --checkpoint=garbage --data_dir=absent "
  "--output_dir=out": "absent has no manifest.json",
  "finetune --task=SST2 --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=out": "did you mean SST-2?",
  "finetune --task=CoLA --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=out": "was prepared for SST-2",
  "finetune --task=SST-2 --checkpoint=absent --data_dir=SST-2 "
  "--output_dir=out": "there is no checkpoint at absent",
  "finetune --task=SST-2 --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=out": "is not the index of a checkpoint",
  "finetune --task=SST-2 --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=out --learning_rates=1e-5,fast": "'fast' is not a number",
  "finetune --task=SST-2 --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=a_file": "a_file is a file",
  "finetune --task=SST-2 --checkpoint=garbage --data_dir=SST-2 "
  "--output_dir=out --init=rendom": "did you mean random?",
  "prepare pretraining --input=text.txt --output_dir=out": "--vocab is missing",
  "prepare pretraining --input=absent*.txt --vocab=vocab.txt "
  "--output_dir=out": "absent*.txt does not match any files",
  "prepare pretraining --input=text.txt --vocab=absent.txt "
  "--output_dir=out": "cannot read absent.txt",
  "prepare pretraining --input=latin.txt --vocab=vocab.txt "
  "--output_dir=out": "is not UTF-8",
  "prepare pretraining --input=text.txt --vocab=vocab.txt --output_dir=out "
  "--masking=whole_words": "did you mean whole_word?",
  "prepare pretraining --input=text.txt --vocab=vocab.txt "
  "--output_dir=a_file": "a_file is a file",
  "prepare pretraining --input=text.txt --vocab=vocab.txt --output_dir=out "
  "--seq_length=4": "of at least 8",
  "prepare glue --task=SST-3 --input_dir=glue --vocab=vocab.txt "
  "--output_dir=out": "did you mean SST-2?",
  "prepare glue --task=SST-2 --vocab=vocab.txt --output_dir=out": (
    "--input_dir is missing"
  ),
  "prepare glue --task=SST-2 --input_dir=absent --vocab=vocab.txt "
  "--output_dir=out": "absent",
  "prepare glue --task=SST-2 --input_dir=no_glue --vocab=vocab.txt "
  "--output_dir=out": "no_glue",
  "prepare glue --task=SST-2 --input_dir=glue --vocab=absent.txt "
  "--output_dir=out": "cannot read absent.txt",
  "prepare squad --input=absent.json --version=1.1 --vocab=vocab.txt "
  "--output_dir=out": "cannot read absent.json",
  "prepare squad --input=squad.json --version=1.0 --vocab=vocab.txt "
  "--output_dir=out": "is not one of 1.1, 2.0",
  "prepare squad --input=squad.json --version=2.0 --vocab=vocab.txt "
  "--output_dir=out --max_seq_length=32": "leaves no token for the paragraph",
  "score squad --version=1.1 --data=absent.json --predictions=list.json": (
    "cannot read absent.json"
  ),
  "score glue --task=SST-2 --data=glue/dev.tsv --predictions=absent.tsv": (
    "cannot read absent.tsv"
  ),
  "score glue --task=SST --data=glue/dev.tsv --predictions=predictions.tsv": (
    "did you mean SST-2?"
  ),
  "submission --runs=absent --output=glue.zip": "absent",
  "submission --runs=glue --output=glue.zip": "has no predictions for",
  "submission --runs=glue --output=a_file": "is already there",
  "report --runs=absent --output_dir=out": "absent is not a directory",
  "report --runs=glue --output_dir=a_file": "a_file is a file",
  "report --runs=glue --output_dir=full": "has files that no report wrote",
  "export --checkpoint=absent --format=savedmodel --output_dir=out": (
    "there is no checkpoint at absent"
  ),
  "export --checkpoint=garbage --format=savedmodel --output_dir=out": (
    "is not the index of a checkpoint"
  ),
  "export --checkpoint=garbage --format=save_model --output_dir=out": (
    "did you mean savedmodel?"
  ),
  "export --checkpoint=garbage --format=savedmodel --output_dir=glue": (
    "is already there"
  ),
  "import --input_dir=absent --output_dir=out": "cannot read absent/",
  "import --input_dir=huggingface --output_dir=out": "model_type is 'gpt2'",
  "import --format=pytorch --input_dir=huggingface --output_dir=out": (
    "'pytorch' is not one of huggingface"
  ),
  f"doctor {_PLAN} --params_override=task.train_data.input_path=absent.txt": (
    "faults above: data"
  ),
  "train --experiment=swe/bert_pretraining --mode=train --model_dir=model "
  "--params_override=task.train_data.input_path=records/*.tfrecord": (
    "cannot read a record"
  ),
}


def calls(root: pathlib.Path) -> Iterator[Call]:
  """Yields the calls.

  Args:
    root: The directory of the repository, where gin/ is.
  """
  swe = {**_COMMANDS, **_TRAIN_CALLS}
  swe |= {f"{_TRAIN} --params_override={o}": s for o, s in _OVERRIDES.items()}
  for line, says in (swe | _OTHERS).items():
    yield Call(f"swe_tf.cli {line}", says)
  yield Call(
    f"swe_tf.train {_TRAIN[6:]} --gin_fil=x", "did you mean --gin_file?"
  )
  for override, says in _STOCK_CALLS.items():
    line = f"{_STOCK.format(root=root)}{override}"
    yield Call(line, says, is_stock=True)
