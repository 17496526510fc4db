"""Scores by the official definitions: SQuAD, GLUE, the paper's averages."""
