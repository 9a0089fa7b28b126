"""Functions that compute numbers of numbers."""
