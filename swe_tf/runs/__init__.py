"""A run's directory, and how runs are started, watched and resumed.

Read `directory` for what a run leaves behind, `sweep` for how runs follow each
other, `worker` for the process that does one. All of it without TensorFlow;
what a run does is a function that the worker imports.
"""
