"""The TPU compiler, without a TPU: what a step would take."""
