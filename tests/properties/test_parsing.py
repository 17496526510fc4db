"""Overrides and YAML: read as written, or refused in one line."""

import re

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import yaml

from official.core import exp_factory
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf import yaml_files
from swe_tf.configs import parsing

# They are cheap, and most texts are at fault in the same few ways.
many = settings(max_examples=200)

_SIGNS = "ab01.,=[]{}'\"-: \n#&*!|>%@`~/gs"
names = st.from_regex(
  r"[a-z][a-z_0-9]{0,3}(\.[a-z][a-z_0-9]{0,3}){0,2}", fullmatch=True
).filter(
  # Model Garden reads these as YAML; no field has such a name.
  lambda name: (
    not {"no", "off", "on", "yes", "true", "null"} & {*name.split(".")}
  )
)
# YAML 1.1 writes these without quotes, though we read them as numbers.
almost_numbers = st.text("01e+x", max_size=5).filter(
  lambda text: not re.fullmatch(r"\+?[0-9]+e\+?[0-9]+", text)
)
plain = (
  st.none()
  | st.booleans()
  | st.integers()
  | st.text(max_size=5)
  | almost_numbers
)
numbers = st.floats(allow_nan=False, allow_infinity=False)
nested = st.recursive(
  plain | numbers,
  lambda inner: (
    st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3)
  ),
  max_leaves=6,
)
# As people write values, and what YAML makes something else of.
values = (
  st.integers().map(str)
  | numbers.map(repr)
  | st.sampled_from(
    ["true", "off", "null", "~", "1e-3", "1_000", "0x10", "", "gs://b/x"]
    + ["/a/{x}.txt", "gs://b/{x}", "soon: {x}", "a: b", "a: {b}"]
  )
  | st.text("abcxyz_/.*-", max_size=6)
  | st.text("ab ,=x", max_size=5).map(repr)
  | st.lists(st.integers(0, 9), max_size=3).map(str)
)


overrides = st.lists(st.tuples(names, values), min_size=1, max_size=4).map(
  lambda items: ",".join(f"{name}={value}" for name, value in items)
)


@settings(max_examples=400)
@given(overrides | st.text(_SIGNS, max_size=20))
def test_no_override_ends_in_a_stack_trace(text):
  config = exp_factory.get_exp_config("swe/bert_pretraining")
  try:
    parsing.apply_overrides(config, text)
  except errors.UsageError as error:
    assert str(error).startswith("params_override:")
    assert "\n" not in str(error)


@many
@given(nested)
def test_yaml_is_read_as_it_was_written(value):
  assert yaml_files.parse(yaml.safe_dump(value), "x") == value


@many
@given(st.text(_SIGNS, max_size=20))
def test_no_yaml_ends_in_a_stack_trace(text):
  try:
    yaml_files.parse(text, "x.yaml")
  except errors.UsageError as error:
    assert str(error).startswith("x.yaml:") and "not YAML" in str(error)


@given(
  st.sampled_from(["trainer.train_steps", "task.seed", "task.sharing.mode"]),
  plain | numbers,
)
def test_a_value_of_a_wrong_kind_is_one_line(name, value):
  kind = str if name == "task.sharing.mode" else int
  layers = value
  for part in reversed(name.split(".")):
    layers = {part: layers}
  config = exp_factory.get_exp_config("swe/bert_pretraining")
  try:
    config.override(layers, is_strict=True)
  except errors.UsageError as error:
    assert name in str(error)
    return
  found = config.as_dict()
  for part in name.split("."):
    found = found[part]
  # Null leaves a text at what the method is by default.
  assert found == value and isinstance(found, (kind, type(None)))
  assert found is not None or kind is str
