"""The GLUE tasks: their facts, their files, their records."""
