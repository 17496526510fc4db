"""`swe sweep`: many runs that differ in a few things, described by one file."""
