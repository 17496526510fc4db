"""Rooms import only from rooms above them, and some need no TensorFlow."""

import subprocess
import sys

from tests import architecture

# Also alone: what a report or a study asks, and what checks invalid arguments.
_LIGHT_MODULES = {
  "swe_tf.convert.huggingface_config",
  "swe_tf.methods.catalog",
  "swe_tf.modeling.checkpoint_files",
  "swe_tf.modeling.registry",
  "swe_tf.modeling.sizes",
}
_LIGHT_ROOMS = {
  *(architecture.BASE, "scoring", "studies", "analysis", "commands"),
  architecture.ENTRY,
}
_HEAVY_MODULES = {
  "swe_tf.fields",  # Of Model Garden's configs.
  "swe_tf.studies.experiments",  # Builds experiments.
  "swe_tf.studies.sweep",
  "swe_tf.studies.finetune.task",
  "swe_tf.studies.demo.session",
  "swe_tf.studies.jobs",  # Trains them.
  "swe_tf.studies.finetune.predictions",
  "swe_tf.studies.pilot",  # Cuts them down.
}


def test_imports_go_up_the_list():
  modules = architecture.read()
  assert {module.room for module in modules.values()} == set(architecture.LEVEL)
  assert architecture.upward_imports(modules) == []


def test_no_modules_import_each_other():
  assert architecture.cycle(architecture.read()) == []


def test_an_upward_import_and_a_cycle_are_found(tmp_path):
  sources = {
    "errors": "",
    "files": "def f():\n  from swe_tf.data import text\n",
    "data/text": "from swe_tf import errors\nimport swe_tf.data.words\n",
    "data/words": "from swe_tf.data.text import Text\n",
    "modeling": "_LATER = 'swe_tf.data.text:read'\n",
  }
  for name, source in sources.items():
    path = tmp_path / "swe_tf" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
  modules = architecture.read(tmp_path)
  assert architecture.upward_imports(modules) == [
    "swe_tf.files imports swe_tf.data.text",
    "swe_tf.modeling imports swe_tf.data.text",
  ]
  assert set(architecture.cycle(modules)) == {
    "swe_tf.data.text",
    "swe_tf.data.words",
  }


def test_sharing_knows_no_bert():
  reached = architecture.reach(architecture.read(), "sharing")
  assert not {name for name in reached if name.startswith("official.nlp")}
  assert "swe_tf.modeling.encoder" not in reached


def test_these_start_without_tensorflow():
  light = [
    module.name
    for module in architecture.read().values()
    if module.name in _LIGHT_MODULES
    or (module.room in _LIGHT_ROOMS and module.name not in _HEAVY_MODULES)
  ]
  code = (
    "import importlib, sys\n"
    f"for name in {light}:\n"
    "  importlib.import_module(name)\n"
    "  if 'tensorflow' in sys.modules: sys.exit(f'{name} imports TensorFlow')"
  )
  subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_is_up_to_date():
  page = architecture.PAGE.read_text("utf-8")
  now = architecture.render(page, architecture.read())
  assert architecture.without_lines(page) == architecture.without_lines(now), (
    "run python -m tests.architecture"
  )
