"""Distributions of programs: exact, sampled, and by other model checkers."""
