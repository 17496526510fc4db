"""Model Garden's own tests of its encoder, with ours in the place of theirs.

Left out: tests of `BertEncoder`, the first version, and of checkpoints that go
from it to the second; it has no final layer norm. The test of saving insists on
Post-LN: `test_encoder` has it for Pre-LN.
"""

import importlib.util
from unittest import mock

from official.nlp.modeling.networks import bert_encoder
from swe_tf.modeling import encoder

_PATCH = mock.patch.object(
  bert_encoder, "BertEncoderV2", encoder.PreLnBertEncoder
)


def stock_tests(name: str, test_case: str, applies=lambda test: True):
  """Returns a test case of Model Garden that builds `PreLnBertEncoder`."""
  # A module of our own: parameters of tests are bound when it is executed.
  spec = importlib.util.find_spec(f"official.nlp.modeling.networks.{name}")
  module = importlib.util.module_from_spec(spec)
  with _PATCH:
    spec.loader.exec_module(module)
  base = getattr(module, test_case)

  class StockTests(base):
    """The tests, run while our class has the name of theirs."""

    def setUp(self):
      super().setUp()
      self.enter_context(_PATCH)

  for test in dir(base):
    if test.startswith("test_") and not applies(test):
      setattr(StockTests, test, None)
  return StockTests


BertEncoderTest = stock_tests(
  "bert_encoder_test",
  "BertEncoderTest",
  lambda test: "encoder_v2" in test or test == "test_embeddings_as_inputs",
)
BertDenseEncoderTest = stock_tests(
  "bert_dense_encoder_test", "BertEncoderV2Test"
)


def test_our_class_is_the_one_that_is_tested():
  ours = encoder.PreLnBertEncoder
  with mock.patch.object(ours, "call", side_effect=KeyError):
    result = BertEncoderTest("test_embeddings_as_inputs").run()
  assert "KeyError" in result.errors[0][1]
