"""Passes over branches, loops and sequences."""
