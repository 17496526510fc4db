"""What turns the claims of Figure 2 to Theorem 2 red: name, mutation."""

from swe_tf.theory import figure2
from swe_tf.theory import proposition1
from swe_tf.theory import regression
from swe_tf.theory import theorem2
from tests.theory import mutants

_PROOF = "proof of Theorem 2: "

MUTATIONS = {
  "figure2_sum_for_mean": mutants.Mutation(
    mutants.FIGURE2,
    (
      "Figure 2: 100 shared steps reach",
      "Figure 2: SWE fits the training set",
      "Figure 2: SWE: mean test error",
      "Figure 2: share of seeds",
      "Figure 2: test error ratio",
    ),
    options=mutants.SUM,
  ),
  "figure2_step_size": mutants.Mutation(
    mutants.FIGURE2,
    ("Figure 2: GD fits the training set", "Figure 2: GD: mean test error"),
    options={"step_scale": 2.0},
  ),
  "figure2_predicted_ratio": mutants.Mutation(
    mutants.FIGURE2,
    ("Figure 2: closed-form ratio", "Figure 2: test error ratio"),
    (mutants.wrong_factor(figure2, "predicted_ratio", 0.7),),
  ),
  "proposition1_few_samples": mutants.Mutation(
    mutants.PROPOSITION1,
    (
      "Proposition 1: slope of ‖ŵ − w̄*‖ against n",
      "Proposition 1: n = L / 2",
    ),
    ((regression, "shared_solution", mutants.few_samples),),
  ),
  "proposition1_one_coordinate": mutants.Mutation(
    mutants.PROPOSITION1,
    (
      "Proposition 1: exact law",
      "Proposition 1: slope of ‖ŵ − w̄*‖ against L",
      "Proposition 1: the constant is",
    ),
    ((proposition1, "distances", mutants.one_coordinate),),
  ),
  "decomposition_half_projection": mutants.Mutation(
    mutants.DECOMPOSITION,
    ("section 3.1: ‖ŵ − w*‖² =", "section 3.1: while shared"),
    ((proposition1, "project", mutants.half_projection),),
  ),
  "decomposition_sum_projection": mutants.Mutation(
    mutants.DECOMPOSITION,
    (
      "after Proposition 1: ‖w̄*‖ is Θ(√L)",
      "after Proposition 1: it needs a common component",
    ),
    ((proposition1, "project", mutants.sum_projection),),
  ),
  "decomposition_one_shared_step": mutants.Mutation(
    mutants.DECOMPOSITION,
    ("section 3.1: sharing does not minimise",),
    ((figure2, "UNTIE_STEP", 1),),
  ),
  "decomposition_sum_for_mean": mutants.Mutation(
    mutants.DECOMPOSITION,
    (
      "section 3.1: untying lowers the second term",
      "proof of Proposition 1: shared training ends",
    ),
    options=mutants.SUM,
  ),
  "theorem1_slow_sharing": mutants.Mutation(
    mutants.THEOREM1,
    ("Theorem 1: decay of R", "Theorem 1: the same for the sharper rate"),
    options=mutants.SLOW,
  ),
  "theorem1_sum_for_mean": mutants.Mutation(
    mutants.THEOREM1,
    (
      "Remark: sharing: R'(0)",
      "Theorem 1: sharing is not what speeds it up",
      "after Theorem 1: the rate repeated without the square",
    ),
    options=mutants.SUM,
  ),
  "theorem1_half_identity": mutants.Mutation(
    mutants.THEOREM1,
    ("Fact 1: ZAS", "Remark: ZAS: R'(0)", "proof of Theorem 1: λmin"),
    (mutants.HALF_IDENTITY,),
  ),
  "theorem2_step_size": mutants.Mutation(
    mutants.THEOREM2,
    (
      "Fact 2: its condition",
      "Theorem 2: Algorithm 1 does not force symmetry",
      "Theorem 2: no constant above 1",
      "Theorem 2: plain gradient descent",
      "Theorem 2: the same up to",
      "Theorem 2: the symmetric shared phase",
      "Theorem 2: untying then reaches",
    ),
    options={"step_scale": 8.0},
  ),
  "theorem2_no_symmetric_part": mutants.Mutation(
    mutants.THEOREM2_SHORT,
    (_PROOF + "σmin(Φₛ) >= σmin(Φ) is the wrong way round",),
    ((theorem2, "symmetric_part", lambda matrices: matrices),),
  ),
  "theorem2_half_symmetric_part": mutants.Mutation(
    mutants.THEOREM2_SHORT,
    (_PROOF + "what holds instead", _PROOF + "‖Φ - Φₛ‖ / ‖Φ - Φ₀‖"),
    (mutants.wrong_factor(theorem2, "symmetric_part", 0.5),),
  ),
  "theorem2_large_singular_value": mutants.Mutation(
    mutants.THEOREM2_SHORT,
    ("Fact 2: the same at identity",),
    (mutants.wrong_factor(theorem2, "smallest_singular", 9),),
  ),
  "theorem2_proof_no_symmetry": mutants.Mutation(
    mutants.THEOREM2_PROOF,
    (_PROOF + "Fact 2's δ",),
    ((theorem2, "symmetric_part", lambda matrices: matrices),),
  ),
  "theorem2_proof_five_steps": mutants.Mutation(
    mutants.THEOREM2_PROOF,
    (
      _PROOF + "(σmin(Φ) - √(2R)) / σmin(Φ₀)",
      _PROOF + "the margin can be",
      _PROOF + "untied gradient descent then reaches",
      _PROOF + "Γ trained ends at",
    ),
    ((theorem2, "STAGE_STEPS", 5),),
  ),
  "theorem2_proof_half_gradient": mutants.Mutation(
    mutants.THEOREM2_PROOF,
    (_PROOF + "with W_i = W₀/√L",),
    (mutants.wrong_factor(theorem2, "gamma_gradient", 0.5),),
  ),
}
