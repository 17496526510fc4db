"""Every optimizer of tf_keras and Model Garden against Algorithm 1.

    python -m tests.sharing.every_optimizer

prints the table of docs/differences.md: the largest difference of any weight or
slot, relative to its tensor, after shared and unshared steps.
"""

import inspect

import tensorflow as tf
import tf_keras

from official.modeling.optimization import optimizer_factory
from swe_tf import errors
from tests.sharing import toy

_SETTINGS = {
  "learning_rate": 0.01,
  "epsilon": 1e-3,
  "momentum": 0.9,
  "weight_decay": 0.01,
  "exclude_from_weight_decay": ["bias"],
}


def discover() -> dict[str, type]:
  """Returns every optimizer that can be made, by module and class."""
  found = [
    *vars(tf_keras.optimizers).values(),
    *vars(tf_keras.optimizers.experimental).values(),
    *vars(tf_keras.optimizers.legacy).values(),
    *optimizer_factory.LEGACY_OPTIMIZERS_CLS.values(),
    *optimizer_factory.NEW_OPTIMIZERS_CLS.values(),
  ]
  base = (
    tf_keras.optimizers.Optimizer,
    tf_keras.optimizers.legacy.Optimizer,
  )
  kinds = dict.fromkeys(c for c in found if inspect.isclass(c))
  return {
    f"{kind.__module__}.{kind.__name__}": kind
    for kind in kinds
    if kind not in base and issubclass(kind, base)
  }


def compare(kind: type, sparse: bool, compiled: bool) -> float | str:
  """Returns the difference from Algorithm 1, or why there is none."""
  known = inspect.signature(kind.__init__).parameters
  make = lambda: kind(**{k: v for k, v in _SETTINGS.items() if k in known})
  run = lambda: toy.train_shared_then_unshared(
    make, 1, 1, compiled, sparse=sparse
  )
  try:
    oracle = toy.run_algorithm_1(make, 1, 1, sparse=sparse)
  except (NotImplementedError, TypeError, ValueError) as error:
    try:  # Stock is not for such gradients: neither is ours.
      run()
    except type(error):
      return f"not in stock: {errors.first_line(error)}"
    raise AssertionError(f"stock raises {error!r}, ours does not") from error
  try:
    ours, identical = run()
  except errors.UsageError as error:
    return f"refused: {error}"
  assert all(identical), "a tie differs within while shared"
  return toy.max_relative_difference(ours, oracle)


def main() -> None:
  tf.get_logger().setLevel("ERROR")
  print("| optimizer | dense | compiled | sparse | compiled |")
  print("|---|---|---|---|---|")
  for name, kind in discover().items():
    cells = []
    for sparse in (False, True):
      for compiled in (False, True):
        result = compare(kind, sparse, compiled)
        is_text = isinstance(result, str)
        cells.append(result.split(":")[0] if is_text else f"{result:.0e}")
    print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
  main()
