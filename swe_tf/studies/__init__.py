"""`swe sweep`: many runs that differ in a few settings, from one file."""
