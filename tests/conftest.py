"""Four logical CPU devices before any test starts TensorFlow; real data."""

import os
import pathlib

from absl import flags
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Small matrices: BLAS threads only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure():
  flags.FLAGS.mark_as_parsed()  # absl's and TensorFlow's tests read them.


def _without_tuning(dataset):
  import tensorflow as tf

  options = tf.data.Options()
  options.autotune.enabled = False
  return dataset.with_options(options)


def pytest_collection_modifyitems(items):
  import tensorflow as tf

  # An iterator that is dropped waits until its tuning thread ends. Now and then
  # the thread misses its cancellation and sleeps on, for up to a minute.
  tf.data.Dataset._apply_debug_options = _without_tuning

  # Every tf.test.TestCase inherits this method, which is not a test.
  items[:] = [item for item in items if item.name != "test_session"]
  # The tests of whole programs take longest: first, so that none of the
  # processes of `make test` is left with them at the end.
  items.sort(key=lambda item: item.path.parent != pathlib.Path(__file__).parent)

  cpu = tf.config.list_physical_devices("CPU")[0]
  tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 4
  )


@pytest.fixture(autouse=True)
def _import_path():
  """Undoes what `cli.main` sets for the processes that a command starts."""
  yield
  os.environ.pop("PYTHONSAFEPATH", None)


@pytest.fixture(scope="session")
def shared():
  """The directory with `data/` and `paper/`; set SWE_SHARED to move it."""
  beside = pathlib.Path(__file__).resolve().parents[1].parent / "shared"
  path = pathlib.Path(os.environ.get("SWE_SHARED", beside))
  if not path.is_dir():
    pytest.skip(f"{path} is not there; SWE_SHARED names another place.")
  return path
