"""Text to masked batches: read, tokenize, pack, mask, resume."""
