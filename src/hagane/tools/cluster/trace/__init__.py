"""Traces of real clusters."""
