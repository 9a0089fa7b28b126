"""Recurrent layers: cells, steps in one program, and whole sequences."""
