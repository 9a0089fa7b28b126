"""Layers, losses and random numbers made of the other functions."""
