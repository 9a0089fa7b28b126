"""Operators applied to tensors of the program, and claims about their sizes."""
