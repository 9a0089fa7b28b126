"""Attributes that a program sets and deletes."""
