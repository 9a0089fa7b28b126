"""Lexers as source code in C and Python."""
