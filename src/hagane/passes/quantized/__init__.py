"""Passes over graphs of 8-bit integers."""
