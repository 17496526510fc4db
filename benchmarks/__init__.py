"""Benchmarks against stock Model Garden, interleaved in one process."""
