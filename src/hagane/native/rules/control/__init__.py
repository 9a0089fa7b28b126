"""Loops and branches around the kernels of their bodies."""
