"""Operators and sizes of a program as nodes of a graph."""
