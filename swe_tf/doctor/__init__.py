"""What a run needs and costs, said before it is started: `swe doctor`."""
