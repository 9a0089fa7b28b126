"""Functions on variables, under the names of Chainer: ``import hagane.functions as F``."""

from hagane.nn.functions import *  # noqa: F403
from hagane.nn.functions import __all__ as __all__
