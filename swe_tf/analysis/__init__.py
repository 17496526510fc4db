"""Measured runs as tables and figures."""
