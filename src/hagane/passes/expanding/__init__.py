"""Passes that write an operator as others."""
