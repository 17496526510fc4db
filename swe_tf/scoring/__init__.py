"""Scores by the official definitions: SQuAD, GLUE, the paper's averages.

Read `squad` and `glue` for the metrics, `column` for how the paper averages
them, and `submission` for the file that the GLUE site accepts. Imports no
TensorFlow. `docs/scoring.md` has the commands.
"""
