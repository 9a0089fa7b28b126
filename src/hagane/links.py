"""Links, under the names of Chainer: ``import hagane.links as L``."""

from hagane.nn.links import *  # noqa: F403
from hagane.nn.links import __all__ as __all__
