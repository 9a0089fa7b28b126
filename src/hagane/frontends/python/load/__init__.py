"""Modules and real objects as values of the program."""
