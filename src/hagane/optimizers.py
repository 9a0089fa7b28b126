"""Optimizers, under the names of Chainer."""

from hagane.nn.optimizers import *  # noqa: F403
from hagane.nn.optimizers import __all__ as __all__
