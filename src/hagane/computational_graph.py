"""Drawings of recorded computations."""

from hagane.nn.computational_graph import ComputationalGraph, build_computational_graph

__all__ = ["ComputationalGraph", "build_computational_graph"]
