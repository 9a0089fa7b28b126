"""Initial values of parameters, under the names of Chainer."""

from hagane.nn.initializers import *  # noqa: F403
from hagane.nn.initializers import __all__ as __all__
from hagane.nn.initializers import get_initializer as _get_initializer  # noqa: F401
