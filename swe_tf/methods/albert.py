"""ALBERT-like: the weights of all blocks are shared to the end.

What: SWE whose untie step is the last one. Every layer keeps its own copy of
the weights, so the checkpoint is an ordinary BERT.

Use: `task.sharing.mode=swe`, `task.sharing.untie_fraction=1.0`.

Cost: as many FLOPs as the baseline; the shared phase's smaller all-reduce and
fewer slots last for the whole run.

Where it does not help: the final loss, at equal depth and width. It is the
worst untie step in Figure 4 of the paper.
"""

from swe_tf.methods import catalog
from swe_tf.methods import swe

catalog.register(
  catalog.Method(
    name=catalog.ALBERT,
    mode=catalog.SWE,
    sharing={"untie_fraction": 1.0, "untie_step": None},
    build=swe.build,
    ignores=frozenset({"tau"}),
    phases=swe.phases_of,
    check=swe.check,
  )
)
