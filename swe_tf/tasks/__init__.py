"""Model Garden tasks that can share block weights."""
