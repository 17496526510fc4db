"""Scores by the official definitions: SQuAD, GLUE, the paper's averages.

Read `squad` and `glue` for the metrics, `averages` for how the paper averages
them, `glue_predictions` and `submission` for the files that the GLUE site
accepts. Imports no TensorFlow. `docs/scoring.md` has the commands.
"""
