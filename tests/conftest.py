"""Makes four logical CPU devices before any test starts TensorFlow."""

import os

from absl import flags

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Small matrices: BLAS threads only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure():
  flags.FLAGS.mark_as_parsed()  # absl's and TensorFlow's tests read them.


def pytest_collection_modifyitems():
  import tensorflow as tf

  cpu = tf.config.list_physical_devices("CPU")[0]
  tf.config.set_logical_device_configuration(
      cpu, [tf.config.LogicalDeviceConfiguration()] * 4
  )
