"""Probabilities of continuous draws: regions that comparisons leave, and their exact measures."""
