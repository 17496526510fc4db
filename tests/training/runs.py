"""The base class of tests that train the tiny BERT."""

import shutil
import tempfile

from absl.testing import parameterized
import tensorflow as tf
import tf_keras

from tests import tiny


class RunsTestCase(tf.test.TestCase, parameterized.TestCase):
  """Has the overrides of a tiny experiment, with its data, in `base`."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    directory = tempfile.mkdtemp()
    cls.addClassCleanup(shutil.rmtree, directory)
    cls.base = tiny.overrides(tiny.write_records(directory))

  def tearDown(self):
    tf_keras.mixed_precision.set_global_policy("float32")
    super().tearDown()

  assert_same_state = staticmethod(tiny.assert_same_state)
