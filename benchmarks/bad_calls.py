"""Invalid calls that a new user might make, and the files that they use.

For `bad_input.py`: a few of each command, as processes. `generated_calls.py`
has all that can be wrong within a file, `tests/configs/test_validation.py` the
values of a config. All paths are below the directory that `write_files` fills.
"""

from collections.abc import Iterator
import dataclasses
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
  texts = {
    "tiny.yaml": tiny,
    "typo.yaml": "trainer:\n  train_stepz: 10\n",
    "text.txt": _TEXT,
    "blank.txt": "\n\n",
    "vocab.txt": "\n".join(TOKENS) + "\n",
    "many.txt": "\n".join((*TOKENS, *map(str, range(90)))) + "\n",
    "bad.gin": "sharing.unit_sise = 2\n",
    "a_file": "",
    "records/a.tfrecord": "no record at all",
    "unfinished/a.tfrecord": "",
    "unfinished/prepare.journal": "",
    "garbage/ckpt-1.index": "garbage",
    "garbage/ckpt-1.data-00000-of-00001": "garbage",
    "garbage/checkpoint": 'model_checkpoint_path: "ckpt-1"\n',
    "run/params.yaml": tiny,
    "run/checkpoint": 'model_checkpoint_path: "ckpt-1"\n',
    "glue/dev.tsv": "sentence\tlabel\nthe cat\t1\n",
    "full/report": "mine",
    "units.yaml": yaml.safe_dump(study | {"axes": {"units": ["3x2"]}}),
    "good.yaml": yaml.safe_dump(study | {"axes": {"seed": [0]}}),
  }
  for name, text in texts.items():
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
  (directory / "latin.txt").write_bytes("Stra\xdfe\n".encode("latin-1"))
  (directory / "cut").mkdir()
  (directory / "cut/ckpt-1.index").write_bytes(b"cut" + _INDEX_END)
  (directory / "cut/ckpt-1.data-00000-of-00001").write_bytes(b"")


@dataclasses.dataclass(frozen=True)
class Call:
  """An invalid call.

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


_RUN = "--mode=train --model_dir=model"
_PLAN = "--experiment=swe/bert_pretraining_text --config_file=tiny.yaml"
_SHARDS = f"train --experiment=swe/bert_pretraining {_RUN}"
_INPUT = "task.train_data.input_path"
_PREPARE = "prepare pretraining --vocab=vocab.txt --output_dir=out"
_TUNE = "finetune --checkpoint=garbage --data_dir=glue --output_dir=out"
_EXPORT = "export --format=savedmodel --output_dir=out"

# What follows `swe train` and its plan.
_TRAIN_CALLS = {
  "--mode=train_and_validate": "use train_and_eval",
  "--param_override=x": "did you mean --params_override?",
  "--config_file=absent.yaml": "absent.yaml: there is no such file",
  "--config_file=experiments/model/base.yaml": "did you mean experiments/mod",
  "--config_file=typo.yaml": "did you mean train_steps?",
  "--config_file=latin.txt": "is not UTF-8",
  "--gin_file=gin/swee.gin": "did you mean gin/swe.gin?",
  "--gin_file=bad.gin": "did you mean unit_size?",
  "--gin_params='sharng.mode = 1'": "matching 'sharng'",
  "--gin_params=SharedWeightsTrainer.untie_rul=1": "'untie_rul'",
  "--gin_params='sharing.mode = swe'": "with text in quotes",
  "--gin_params='sharing.unit_size = 3'": "(3) must divide",
  "--model_dir=a_file/model": "a_file is a file",
}
_OVERRIDES = {
  "task.train_data.input_path=text.txt,more.txt": "put a value that has commas",
  "task.train_data.input_path=absent.txt": "absent.txt does not match any",
  "task.train_data.input_path=blank.txt": "blank.txt holds no text",
  "task.train_data.vocab_file_path=many.txt": "the model has room for",
  "task.init_checkpoint=absent": "there is no checkpoint at task.init_check",
  "task.init_checkpoint=garbage": "is not the index of a checkpoint",
  "task.init_checkpoint=cut/ckpt-1": "cannot be read",
  "runtime.distribution_strategy=mirrored,runtime.num_gpus=64": "64",
}
_STOCK_CALLS = {
  "task.sharing.unitsize=1": "did you mean unit_size?",
  "task.sharing.unit_size=3": "unit_size (3) must divide",
  "task.train_data.input_path=absent.txt": "absent.txt does not match any",
}
_OTHERS = {
  "experiments experiments/models/bse.yaml": "did you mean experiments/models/",
  "experiments --plugins=absent_module": "cannot be imported",
  "theory theorem9 --output_dir=out": "did you mean theorem",
  "theory all --output_dir=a_file": "is a file; name another",
  "train": "--experiment is missing",
  f"train --experiment=swe/bert_pretrainin {_RUN}": "did you mean swe/bert_pre",
  f"train {_PLAN} --mode=train --model_dir=run": "names no checkpoint of this",
  _SHARDS: "task.train_data.input_path is not set",
  f"{_SHARDS} --params_override={_INPUT}=unfinished/a.tfrecord": "not finished",
  f"{_SHARDS} --params_override={_INPUT}=records/*": "cannot read a record",
  "demo --output_dir=a_file": "a_file is a file",
  "demo --output_dir=out --params_override=task.seeds=5": "did you mean seed?",
  "doctor --experiment=swe/squad": "data_dir",
  f"doctor {_PLAN} --params_override={_INPUT}=x": "faults above: data",
  f"doctor cost {_PLAN} --params_override=task.sharing.unit_size=3": "divide",
  f"doctor tpu {_PLAN} --topology=v9:2x2": "v9",
  f"pilot {_PLAN} --output_dir=out": "give either --hours or --steps.",
  f"pilot {_PLAN} --output_dir=a_file --steps=20": "a_file is a file",
  "sweep absent.yaml --output_dir=out": "cannot read absent.yaml",
  "sweep units.yaml --output_dir=out": "units 3x2 are 6 layers",
  "sweep good.yaml --output_dir=a_file": "a_file is a file",
  "sweep good.yaml --output_dir=out --jobs=0": "'0' is not an integer",
  f"{_TUNE} --task=SST-2": "glue has no manifest.json",
  f"{_TUNE} --task=SST-2 --learning_rates=1e-5,fast": "'fast' is not a number",
  f"{_PREPARE} --input=absent*.txt": "absent*.txt does not match any files",
  f"{_PREPARE} --input=latin.txt": "is not UTF-8",
  f"{_PREPARE} --input=text.txt --masking=whole_words": "did you mean whole_wo",
  f"{_PREPARE} --input=text.txt --seq_length=4": "of at least 8",
  "prepare glue --task=SST-2 --input_dir=full --vocab=vocab.txt "
  "--output_dir=out": "full has no train, dev",
  "prepare squad --input=absent.json --version=1.1 --vocab=vocab.txt "
  "--output_dir=out": "cannot read absent.json",
  "score glue --task=SST --data=glue/dev.tsv --predictions=x": "mean SST-2?",
  "submission --runs=glue --output=glue.zip": "has no predictions for",
  "submission --runs=glue --output=a_file": "is already there",
  "report --runs=absent --output_dir=out": "absent is not a directory",
  "report --runs=glue --output_dir=full": "has files that no report wrote",
  "diff run glue": "glue is not a run",
  f"{_EXPORT} --checkpoint=absent": "there is no checkpoint at absent",
  f"{_EXPORT} --checkpoint=garbage": "is not the index of a checkpoint",
  f"{_EXPORT} --checkpoint=garbage --format=save_model": "did you mean saved",
  "import --input_dir=absent --output_dir=out": "cannot read absent/",
}


def calls(root: pathlib.Path) -> Iterator[Call]:
  """Yields the calls.

  Args:
    root: The directory of the repository, where gin/ is.
  """
  overrides = {f"--params_override={o}": s for o, s in _OVERRIDES.items()}
  for rest, says in (_TRAIN_CALLS | overrides).items():
    yield Call(f"swe_tf.cli train {_RUN} {_PLAN} {rest}", says)
  for line, says in _OTHERS.items():
    yield Call(f"swe_tf.cli {line}", says)
  yield Call(f"swe_tf.train {_RUN} {_PLAN} --gin_fil=x", "mean --gin_file?")
  for override, says in _STOCK_CALLS.items():
    line = f"official.nlp.train --gin_file={root}/gin/swe.gin {_RUN} {_PLAN}"
    yield Call(f"{line} --params_override={override}", says, is_stock=True)
