"""Expressions and statements over abstract values."""
