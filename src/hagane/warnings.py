"""Warnings of define-by-run programs."""


class PerformanceWarning(Warning):
    """Something that works, and could be faster."""
