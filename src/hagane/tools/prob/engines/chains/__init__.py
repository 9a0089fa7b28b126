"""Markov chains of programs: their machine, and exact solutions."""
