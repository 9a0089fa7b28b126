"""Frontends: what becomes a graph, and is checked on the way."""
