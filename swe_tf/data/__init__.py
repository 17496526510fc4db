"""Text to masked examples, SQuAD and GLUE.

Nothing is imported here: reading docstrings or scoring needs no TensorFlow.
"""
