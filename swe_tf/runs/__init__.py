"""A run's directory, how runs are started, watched and resumed."""
