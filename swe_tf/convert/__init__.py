"""Encoders from and to other formats."""
