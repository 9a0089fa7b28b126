"""Lexers: specifications, start conditions, tokens."""
