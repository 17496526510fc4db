"""`swe doctor`: what a run needs and costs, before it is started."""
