"""Registers every experiment and task of this package by being imported.

A gin file does it for the stock driver: `import swe_tf.registry`.
"""

# ruff: noqa: F401
from swe_tf.configs import bert_pretraining
from swe_tf.configs import finetuning
from swe_tf.modeling import activations
from swe_tf.training import trainer
