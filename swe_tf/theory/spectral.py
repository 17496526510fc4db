"""Deep linear networks one eigenvalue at a time, for depths of thousands.

For a symmetric target, identity and ZAS initialisation keep every layer
diagonal in the eigenbasis of Phi and the first L - 1 layers equal. So a
network is, for each eigenvalue of Phi, two numbers: u in layers 1 to L - 1 and
w in layer L. The two methods differ only in w(0): 1 is weight sharing from
identity (the gradients of all layers are equal, so that their mean is each of
them), 0 is ZAS. Exact, not an approximation: a test compares with
`deep_linear`. Not for targets that are not symmetric.
"""

import functools

import numpy as np
from scipy import integrate

SHARING = 1.0
ZAS = 0.0
# A network is trained once R <= FRACTION * R(0).
FRACTION = 1e-6


def gradient(u, w, num_layers, target):
  """The errors u^(L-1) w - phi, and the gradients for u (per layer) and w."""
  power = u ** (num_layers - 2)
  error = power * u * w - target
  return error, error * w * power, error * u * power


def time_to_train(
  target, start: float, num_layers: int, fraction: float = FRACTION
) -> float:
  """The time at which gradient flow first has R <= fraction * R(0)."""
  target = np.asarray(target, float)

  def velocity(_, state):
    u, w = np.split(state, 2)
    return -np.concatenate(gradient(u, w, num_layers, target)[1:])

  def reached(_, state, goal=0.0):
    u, w = np.split(state, 2)
    error, *_ = gradient(u, w, num_layers, target)
    return np.log(np.sum(error**2)) - goal

  state = np.concatenate([np.ones_like(target), np.full_like(target, start)])
  goal = reached(0, state) + np.log(fraction)
  event = functools.partial(reached, goal=goal)
  event.terminal = True  # type: ignore[attr-defined]  # For scipy.
  # The bounds of Theorem 1 and Fact 1 say how long this can take.
  slowest = num_layers * min(1.0, np.min(np.abs(target))) ** 2
  horizon = -np.log(fraction) * max(1.0, 1 / slowest)
  # An error of u counts L times.
  settings = dict(events=event, rtol=1e-12, atol=1e-14)
  solution = integrate.solve_ivp(
    velocity, (0, horizon), state, "LSODA", **settings
  )
  return float(solution.t_events[0][0])


def times_to_train(target, start: float, depths) -> np.ndarray:
  """`time_to_train` for each depth."""
  return np.array([time_to_train(target, start, depth) for depth in depths])


def steps_to_train(
  target, start: float, num_layers, step_size, limit: int, fraction=FRACTION
) -> np.ndarray:
  """The number of steps after which R stays <= fraction * R(0).

  `num_layers` and `step_size` are arrays, broadcast against each other; the
  number is infinity where R is not below after `limit` steps.
  """
  num_layers, step_size = np.broadcast_arrays(num_layers, step_size)
  depth, step = num_layers[..., None], step_size[..., None]
  u = np.ones((*step_size.shape, len(target)))
  w = np.full_like(u, start)
  reached = np.full(step_size.shape, np.inf)
  goal = None
  with np.errstate(over="ignore", invalid="ignore"):
    for count in range(limit + 1):
      error, toward_u, toward_w = gradient(u, w, depth, target)
      losses = np.sum(error**2, axis=-1)
      goal = fraction * losses if goal is None else goal
      below = losses <= goal
      reached = np.where(below, np.minimum(reached, count), np.inf)
      if below.all():
        break
      u, w = u - step * toward_u, w - step * toward_w
  return reached
