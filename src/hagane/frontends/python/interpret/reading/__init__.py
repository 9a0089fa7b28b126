"""Attributes, items and iteration of every kind of value."""
