"""Functions that draw random numbers, and losses over drawn classes."""
