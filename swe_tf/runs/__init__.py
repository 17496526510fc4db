"""A run's directory, and how runs are started, watched and resumed.

Read `directory` for what a run leaves behind, `sweep` for how runs are executed
one after another, `worker` for the process that executes one. All of it starts
without TensorFlow; what a run does is a function that the worker imports.
"""
