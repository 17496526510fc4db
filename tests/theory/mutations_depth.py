"""What turns the claims of the lemma to the optimizer red: name, mutation."""

import numpy as np

from swe_tf.theory import control
from swe_tf.theory import deep_linear
from swe_tf.theory import optimizer_check
from swe_tf.theory import spectral
from swe_tf.theory import theorem3
from tests.theory import mutants

_PROOF = "proof of Theorem 3: "
_NO_DEPTH = (spectral, "gradient", mutants.without_depth)
_SWAPPED = ((spectral, "ZAS", 1.0), (spectral, "SHARING", 0.0))

MUTATIONS = {
  "lemma_step_size": mutants.Mutation(
    mutants.LEMMA,
    ("Lemma: largest step outside", "Theorem 3, stronger: decay of R"),
    options={"step_scale": 4.0},
  ),
  "theorem3_slow_sharing": mutants.Mutation(
    mutants.THEOREM3, ("Theorem 3: decay of R",), options=mutants.SLOW
  ),
  "fact3_rate": mutants.Mutation(
    mutants.FACT3,
    ("Fact 3: ZAS: decay of R",),
    ((theorem3, "FACT3_RATE", 2.1),),
  ),
  "fact3_all_layers_zero": mutants.Mutation(
    mutants.FACT3,
    ("Fact 3: ZAS: decay of R",),
    (
      (
        deep_linear,
        "zero_asymmetric",
        mutants.scaled(deep_linear.identity, 0),
      ),
    ),
  ),
  "slips_corrected": mutants.Mutation(
    mutants.THEOREM3_SLIPS,
    ("proof of the Lemma: its display sums", _PROOF + "I₂ is printed"),
    (
      (theorem3, "share", mutants.half_the_step),
      (theorem3, "second_order_ratio", mutants.near_one),
    ),
  ),
  "theorem3_proof_step_size": mutants.Mutation(
    mutants.THEOREM3_PROOF,
    (_PROOF + "‖∇R‖ / (φ^", _PROOF + "with φ³", _PROOF + "I₃ /"),
    options={"step_scale": 300.0},
  ),
  "theorem3_proof_half_identity": mutants.Mutation(
    mutants.THEOREM3_PROOF,
    (_PROOF + "(R(t) - R(t+1))", _PROOF + "‖∇R‖ / (min(λmin, 1)^"),
    (mutants.HALF_IDENTITY,),
  ),
  "theorem3_proof_beyond_the_grid": mutants.Mutation(
    mutants.THEOREM3_PROOF,
    (_PROOF + "((x+y)^L - x^L) /", _PROOF + "((x+y)^L - x^L - L x^(L-1) y)"),
    ((theorem3, "GRID_SHARES", np.geomspace(1, 1e4, 20)),),
  ),
  "theorem3_proof_slow_sharing": mutants.Mutation(
    mutants.THEOREM3_PROOF,
    (_PROOF + "R(t+1) - R(t) = I₁",),
    options=mutants.SLOW,
  ),
  "theorem3_proof_inner_product": mutants.Mutation(
    mutants.THEOREM3_PROOF,
    (_PROOF + "I₁ = -ηL",),
    (mutants.wrong_factor(theorem3, "inner", 1.5),),
  ),
  "depth_two_layers_flow": mutants.Mutation(
    mutants.CONTINUOUS,
    (
      "Remark: ZAS' rate is not 2 for long",
      "Remark: ZAS' time",
      "Theorem 1: exponent in L",
      "Theorem 1: sharing's time",
    ),
    (_NO_DEPTH,),
  ),
  "depth_swapped_starts": mutants.Mutation(
    mutants.CONTINUOUS, ("after Theorem 1: a small eigenvalue",), _SWAPPED
  ),
  "depth_two_layers_steps": mutants.Mutation(
    mutants.PRESCRIBED,
    (
      "Fact 3: exponent in L of ZAS' steps at its step size",
      "Theorem 3: exponent in L of the steps at its step size",
      "Theorem 3: steps / guaranteed steps",
    ),
    (_NO_DEPTH,),
  ),
  "depth_too_large_step": mutants.Mutation(
    mutants.PRESCRIBED,
    ("Fact 3: the same for Φ = 0.001", "Fact 3: literal steps"),
    (
      (
        theorem3,
        "fact3_step_size",
        lambda norm, layers: 1 / np.asarray(layers, float) ** 0.5,
      ),
    ),
  ),
  "depth_two_layers_best": mutants.Mutation(
    mutants.FREE,
    (
      "Fact 3: best constant step size",
      "Theorem 3, stronger: steps at",
      "Theorem 3: best constant step size",
    ),
    (_NO_DEPTH,),
  ),
  "control_not_symmetric": mutants.Mutation(
    mutants.CONTROL,
    ("Theorem 3: it compares initialisations", "Theorem 3: sharing's steps /"),
    ((deep_linear, "positive_definite", mutants.not_symmetric),),
  ),
  "control_slow_sharing": mutants.Mutation(
    mutants.CONTROL, ("Theorem 2: the same ratio",), options=mutants.SLOW
  ),
  "control_no_symmetric_steps": mutants.Mutation(
    mutants.CONTROL,
    ("Theorem 2: the symmetric stem of its proof",),
    ((control, "SYMMETRIC_STEPS", 0),),
  ),
  "control_swapped_starts": mutants.Mutation(
    mutants.CONTROL,
    ("after Theorem 3: ZAS' steps", "after Theorem 3: the same at L"),
    _SWAPPED,
  ),
  "optimizer_sum_for_mean": mutants.Mutation(
    mutants.OPTIMIZER,
    (
      "Algorithm 1: the optimizer that trains BERT = Algorithm 1 in numpy, l",
      "Algorithm 1: the optimizer that trains BERT = Algorithm 1 in numpy, d",
    ),
    options=mutants.SUM,
  ),
  **{
    f"optimizer_untied_after_{step}_for_15": mutants.Mutation(
      mutants.OPTIMIZER,
      (
        "Algorithm 1: the optimizer that trains BERT = Algorithm 1 in numpy, l",
      ),
      ((optimizer_check, "train", mutants.untied_after(step)),),
    )
    for step in (14, 16)
  },
}
