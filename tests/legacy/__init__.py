"""What the code before the great refactoring wrote, and what made it."""
