"""The method: which weights share, when they untie, how an update runs."""
