"""Registers every experiment, task and gin name of this package when imported.

For the stock driver, a gin file imports it: `import swe_tf.registry`. The
driver locks gin before it makes the trainer, so everything that gin can bind is
imported here.
"""

# ruff: noqa: F401
from swe_tf.configs import experiment
from swe_tf.configs import finetuning
from swe_tf.methods import gin_bindings
from swe_tf.methods import plans
from swe_tf.modeling import encoder
from swe_tf.sharing import schedule
from swe_tf.training import trainer
