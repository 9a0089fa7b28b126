"""Shapes, bounds and amounts that come with the data."""
