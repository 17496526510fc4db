"""Experiment configs; `swe_tf.registry` registers them."""
