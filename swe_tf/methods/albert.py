"""ALBERT-like: the weights of all blocks are shared to the end.

What: SWE whose untie step is the last one. Every layer keeps its own copy of
the weights, so that the checkpoint is an ordinary BERT.

Use: `task.sharing.mode=swe`, `task.sharing.untie_fraction=1.0`.

Cost: as many FLOPs as the baseline; the smaller all-reduce and the fewer slots
of the shared phase, for the whole run.

Where it does not help: in the final loss, at equal depth and width: Figure 4 of
the paper has it as the worst untie step.
"""

from swe_tf.methods import swe

build = swe.build
