"""Sums over axes: statistics, products, distances, linear algebra, normalisation."""
