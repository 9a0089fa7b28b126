"""Submitters that are ready to use."""
