"""`swe prepare`: jobs that write shards, and the manifest beside them."""
