"""Branches, loops and growing lists of a program as those of a graph."""
