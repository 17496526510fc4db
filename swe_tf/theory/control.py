"""What sharing adds if the initialisation is equal: a control for section 3.2.

The paper compares sharing from identity with untied training from the
zero-asymmetric start (ZAS). Here is the run that it leaves out: identity and
never tied. For a positive definite target it is the same run as sharing, so the
theorems compare initialisations.
"""

import numpy as np

from swe_tf.theory import claims
from swe_tf.theory import deep_linear
from swe_tf.theory import depth as depth_lib
from swe_tf.theory import experiment
from swe_tf.theory import theorem3

DEPTHS = (2, 4, 8, 16, 64)
SIZE = 4
TARGETS = 6
NUM_STEPS = 300


def steps_to_train(losses: np.ndarray) -> np.ndarray:
  """The first step with R <= FRACTION R(0) of each target; infinity if none."""
  below = losses <= depth_lib.FRACTION * losses[0]
  return np.where(below.any(axis=0), below.argmax(axis=0), np.inf)


def run(options: experiment.Options) -> experiment.Outcome:
  """Trains the control beside sharing, and compares all steps of both."""
  targets = deep_linear.positive_definite(
    options.rng(12), TARGETS, SIZE, low=0.5, high=2
  )
  eigenvalues = np.linalg.eigvalsh(targets)
  gap, ratios = 0.0, []
  for depth in DEPTHS:
    step_size = theorem3.lemma_step_size(eigenvalues, depth)
    start = deep_linear.identity(targets, depth)
    schedules = (
      options.schedule(step_size, NUM_STEPS, untie_step)
      for untie_step in (NUM_STEPS, 0)
    )
    runs = (deep_linear.descend(start, targets, each) for each in schedules)
    losses = []
    for pair in zip(*runs):
      # np.maximum, unlike max, keeps the NaN of a run that diverges.
      gap = np.maximum(gap, np.max(np.abs(pair[0] - pair[1])))
      losses.append([deep_linear.loss(network, targets) for network in pair])
    tied, untied = steps_to_train(np.array(losses))
    ratios.append(tied / untied)
  flat = np.ravel(ratios)
  found = [
    claims.slip(
      "Theorem 3: it compares initialisations: from identity, tied and untied "
      f"gradient descent are one run, L = 2 to {DEPTHS[-1]}: largest weight "
      "difference over all steps"
    ).at_most(1e-12, gap),
    claims.slip(
      "Theorem 3: sharing's steps / those of the same start never tied, worst "
      "target and L"
    ).close(1, 0.02, flat[np.argmax(np.abs(flat - 1))]),
  ]
  return experiment.Outcome(found)
