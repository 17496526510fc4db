"""Overrides, gin and YAML: read as written, or refused in one line."""

import re

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import yaml

from official.modeling import hyperparams
from official.modeling.hyperparams import params_dict
from swe_tf import errors
from swe_tf import yaml_files
from swe_tf.configs import early
from swe_tf.configs import gin_text
from swe_tf.configs import override_text

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


class _Taken(params_dict.ParamsDict):
  def override(self, override_params, is_strict=True):
    self.__dict__["taken"] = override_params


@many
@given(st.lists(st.tuples(names, values), min_size=1, max_size=4))
def test_overrides_are_read_as_model_garden_reads_them(items):
  text = ",".join(f"{name}={value}" for name, value in items)
  taken = _Taken()
  try:
    hyperparams.override_params_dict(taken, text, is_strict=True)
    expected = taken.__dict__["taken"]
  except Exception:  # It has many ways to refuse.
    expected = None
  try:
    found = override_text.parse(text)
  except errors.UsageError as error:
    assert "\n" not in str(error)
    # Model Garden lets a value hide a table, and the other way round.
    assert expected is None or "so is the table" in str(error)
  else:
    assert expected is None or found == expected


@many
@given(st.text(_SIGNS, max_size=20))
def test_no_text_of_an_override_ends_in_a_stack_trace(text):
  try:
    found = override_text.parse(text)
  except errors.UsageError as error:
    assert str(error).startswith("--params_override:")
  else:
    assert found is None or isinstance(found, dict)


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
  st.dictionaries(
    st.sampled_from(["mode", "unit_size", "untie_step", "rho", "stages"]),
    plain | numbers | st.lists(st.integers(), max_size=3),
    max_size=4,
  )
)
def test_gin_bindings_become_overrides(bound):
  text = [f"sharing.{name} = {value!r}" for name, value in bound.items()]
  found = gin_text.read([], text)
  assert found.overrides == ({"task": {"sharing": bound}} if bound else {})
  assert not found.decides_sharing and not found.imports_others


@many
@given(st.text(_SIGNS + "()", max_size=16), st.booleans())
def test_no_gin_binding_ends_in_a_stack_trace(text, is_value):
  text = f"sharing.unit_size = {text}" if is_value else text
  try:
    gin_text.read([], [text])
  except errors.UsageError as error:
    assert str(error)


@given(
  st.sampled_from(["trainer.train_steps", "task.seed", "task.sharing.mode"]),
  plain | numbers,
)
def test_a_value_of_a_wrong_kind_is_one_line(name, value):
  kind = str if name == "task.sharing.mode" else int
  layers = value
  for part in reversed(name.split(".")):
    layers = {part: layers}
  try:
    found = early.merged("swe/bert_pretraining", [("x", layers)])
  except errors.UsageError as error:
    assert name in str(error)
    return
  for part in name.split("."):
    found = found[part]
  # Null leaves a text at what the method is by default.
  assert found == value and isinstance(found, (kind, type(None)))
  assert found is not None or kind is str
