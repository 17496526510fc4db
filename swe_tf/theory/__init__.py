"""Section 3 and appendix A of the paper, as experiments that can fail.

Read `algorithm1` first, then the two models (`regression`, `deep_linear`),
then the experiment you care about: one module per statement of the paper, all
listed in `experiment`. `docs/theory.md` has the results, and
`docs/theory_proofs.md` the derivations.
"""
