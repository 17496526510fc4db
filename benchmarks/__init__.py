"""Ratios against the stock, side by side in one process."""
