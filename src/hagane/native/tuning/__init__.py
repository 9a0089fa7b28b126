"""Measuring which form of a kernel is fastest here."""
