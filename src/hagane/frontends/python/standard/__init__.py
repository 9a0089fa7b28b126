"""Python's own functions and containers."""
