"""What the layers are right after untying: copies, or copies made different.

Copies of one layer with equal slots part only as fast as their gradients
differ. These ways out break the symmetry at the untie step, in all units but
the first, which stays as it was trained:

- `noise`: normal noise on the kernels, half as large as their own deviation.
- `redraw`: a random half of the entries of each kernel is drawn anew, with the
  deviation that the kernel has.
- `identity`: new layers of their own random kernels, whose output projections
  are 0, so that under Pre-LN they start as the identity. Without the random
  kernels all new layers would have the same gradients and stay equal.

Slots are copied in any case: their scale is right, and moments of directions
that no longer exist fade within tens of steps.
"""

import numpy as np
import tensorflow as tf

from swe_tf.sharing import plan as plan_lib

COPIES, NOISE, REDRAW, IDENTITY = "copies", "noise", "redraw", "identity"
WAYS = (COPIES, NOISE, REDRAW, IDENTITY)
_NOISE, _REDRAWN = 0.5, 0.5


def break_symmetry(plan: plan_lib.SharingPlan, way: str, seed: int) -> None:
  """Makes the units of a plan that was just untied different. Runs eagerly.

  Args:
    plan: The ties.
    way: One of `WAYS`.
    seed: What is drawn is a function of it, of the tie and of the unit.
  """
  if way == COPIES:
    return
  for index, tie in enumerate(plan.whole_ties):
    for unit, variable in enumerate(tie[1:], start=1):
      random = np.random.default_rng([seed, index, unit])
      value = _changed(variable, way, random)
      if value is not None:
        variable.assign(tf.cast(value, variable.dtype))


def _changed(
  variable: tf.Variable, way: str, random: np.random.Generator
) -> np.ndarray | None:
  """Returns the new value of a variable; None if it stays as it is."""
  value = variable.numpy()
  if way == IDENTITY and "output/" in variable.name:
    return np.zeros_like(value)
  if "kernel" not in variable.name:
    return None
  drawn = random.standard_normal(value.shape) * value.std()
  if way == NOISE:
    return value + _NOISE * drawn
  kept = random.random(value.shape) >= (1.0 if way == IDENTITY else _REDRAWN)
  return np.where(kept, value, drawn)
