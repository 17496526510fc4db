"""The examples run, blocks tied until they untie; corpora become text."""

import gzip
import importlib
import json
import pathlib
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from experiments import documents
from swe_tf import errors

_FOLDER = pathlib.Path(__file__).parents[1] / "examples"


@pytest.fixture(name="load")
def fixture_load(monkeypatch):
  """Imports an example as it imports its neighbours: from its own folder."""
  monkeypatch.syspath_prepend(str(_FOLDER))
  yield importlib.import_module
  for path in _FOLDER.glob("*.py"):
    sys.modules.pop(path.stem, None)


def _watch(callback):
  """Notes after each update whether all ties are equal."""

  class Watch(callback):
    is_tied = []

    def on_train_batch_end(self, batch, logs=None):
      del batch, logs
      equal = (
        np.array_equal(np.array(stem), np.array(branch))
        for stem, *branches in self.model.optimizer.plan.whole_ties
        for branch in branches
      )
      self.is_tied.append(all(equal))

  return Watch()


@pytest.mark.parametrize(
  "name, loop",
  [
    *(("mlp", 1), ("gpt", 1), ("keras3_bert", 1), ("multitask", 2)),
    pytest.param("vit", 1, marks=pytest.mark.slow),
  ],
)
def test_blocks_are_tied_until_the_untie_step(
  load, name, loop, tmp_path, monkeypatch, capsys
):
  keras = tf_keras
  if name == "keras3_bert":
    pytest.importorskip("keras_hub", reason="pip install '.[keras3]'")
    import keras
  module, watch = load(name), _watch(keras.callbacks.Callback)
  train = module.train

  def watched(steps, *, share):
    return train(steps, share=share, callbacks=[watch] if share else [])

  monkeypatch.setattr(module, "BLOCKS", 2)
  monkeypatch.setattr(module, "train", watched)
  module.main(["--steps=20", f"--output_dir={tmp_path}"])
  rows = re.findall(
    r"(?m)^ +(\d+) +([\d.]+) +([\d.]+)$", capsys.readouterr().out
  )
  steps = [int(step) for step, _, _ in rows]
  assert steps == list(range(loop, 21, loop))
  assert watch.is_tied == [step <= 2 for step in steps]
  assert all(one != other for _, one, other in rows)
  (figure,) = tmp_path.iterdir()
  assert figure.stem.startswith(name) and figure.stat().st_size > 1000


def test_the_notebook_runs_and_its_blocks_part(monkeypatch, capsys):
  monkeypatch.setenv("MPLBACKEND", "agg")
  cells = json.loads((_FOLDER / "keras.ipynb").read_text("utf-8"))["cells"]
  code = "\n".join(
    "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"
  )
  for printed, less in (
    ("STEPS, BATCH", "_, BATCH"),
    ("1000, 64, 16", "0, 64, 2"),
  ):
    assert printed in code
    code = code.replace(printed, less, 1)
  names = {"STEPS": 130}
  exec(compile(code, "keras.ipynb", "exec"), names)
  first, second, apart = capsys.readouterr().out.strip().splitlines()
  assert first.startswith("never shared: ")
  assert second.startswith("shared, then untied: ")
  assert apart.startswith("1x2 unshared apart: [") and names["apart"].min() > 0
  assert names["optimizer"].untied_at == 13


@pytest.mark.slow
def test_model_gardens_vit_under_the_stock_driver(load, tmp_path):
  example = load("model_garden_vit")
  config_file = example.write_config(tmp_path, steps=4)
  example.train(
    tmp_path / "run",
    config_file,
    [
      *example.SHARED,
      "--gin_params=sharing.untie_step = 2",
      "--params_override=trainer.checkpoint_interval=2,"
      "trainer.steps_per_loop=2,trainer.summary_interval=2,"
      "trainer.validation_interval=2,trainer.validation_steps=1,"
      "trainer.max_to_keep=2",
    ],
  )
  for step, is_tied in ((2, True), (4, False)):
    reader = tf.train.load_checkpoint(str(tmp_path / "run" / f"ckpt-{step}"))
    kernels = [
      reader.get_tensor(name)
      for name in reader.get_variable_to_shape_map()
      if re.search(r"_encoder_layers/\d+/_output_dense/kernel/\.ATT", name)
    ]
    assert len(kernels) == 12
    equal = [np.array_equal(kernels[0], other) for other in kernels[1:]]
    assert all(equal) if is_tied else not any(equal)


_MARKDOWN = """# Title: T

## Year: 1904

-------

## ACT ONE

_[A room.]_ It was
late, **very** late.

* * *

> The end_of it.
"""
_GUTENBERG = """The Project Gutenberg eBook of T
*** START OF THE PROJECT GUTENBERG EBOOK T ***

It was.

*** END OF THE PROJECT GUTENBERG EBOOK T ***
License
"""


def test_a_dump_and_books_become_one_text_file(tmp_path):
  (tmp_path / "wiki_00").write_text(
    '{"title": "A", "text": "A\\n\\nOne."}\n{"title": "B", "text": ""}\n'
  )
  (tmp_path / "wiki_01.md").write_text(_MARKDOWN)
  (tmp_path / "wiki_02").write_text(_GUTENBERG)
  output = tmp_path / "text.txt.gz"
  arguments = [f"--output={output}", f"{tmp_path}/wiki_*"]
  documents.main(arguments)
  lines = gzip.open(output, "rt").read()
  assert lines.split("\n\n")[:2] == [
    "A\nOne.",
    "ACT ONE\n[A room.] It was late, very late.\nThe end_of it.",
  ]
  assert "It was." in lines.splitlines() and "License" not in lines
  with pytest.raises(SystemExit):
    documents.main(arguments)
  assert gzip.open(output, "rt").read() == lines

  path = tmp_path / "wiki_00"
  path.write_text('{"text": "One."}\n{"title": "B"}\n')
  with pytest.raises(errors.UsageError, match="wiki_00:2: no JSON object"):
    list(documents.documents(str(path)))
