"""Whole define-by-run programs drawn at random, as text that Chainer and hagane both run."""
