"""The interpreter as a whole, and the ways to start it."""
