"""Hooks around links, under the names of Chainer."""

from hagane.nn.hooks import LinkTimer as TimerHook
from hagane.nn.hooks import SpectralNormalization, WeightStandardization

__all__ = ["SpectralNormalization", "TimerHook", "WeightStandardization"]
