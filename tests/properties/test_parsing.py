"""Fields and YAML: read as written, or refused in one line."""

import re

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import yaml

from official.core import exp_factory
from swe_tf import errors
from swe_tf import registry  # noqa: F401 (registers)
from swe_tf import yaml_files

# They are cheap.
many = settings(max_examples=200)

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


@many
@given(nested)
def test_yaml_is_read_as_it_was_written(value):
  assert yaml_files.parse(yaml.safe_dump(value), "x") == value


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
