"""Passes that compute ahead: constants, shapes, and neighbours of weights."""
