"""Agents by one protocol, of any library."""
