"""Eager calls on the engine's kernels: programs for open sizes, NumPy until they are there."""
