"""Tables, comparisons and checks for tests, under the names of Chainer."""

from hagane.nn.testing import *  # noqa: F403
from hagane.nn.testing import __all__ as __all__
