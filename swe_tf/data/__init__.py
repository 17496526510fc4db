"""Text to masked examples, SQuAD and GLUE."""
