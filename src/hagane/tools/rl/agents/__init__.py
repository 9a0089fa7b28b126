"""Agents by one protocol, whatever they are made of."""
