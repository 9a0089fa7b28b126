"""Reads of the API server's clients: lists, watches, selectors, tables."""
