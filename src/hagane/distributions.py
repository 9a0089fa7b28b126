"""Distributions, under the names of Chainer."""

from hagane.nn.distributions import *  # noqa: F403
from hagane.nn.distributions import __all__ as __all__
