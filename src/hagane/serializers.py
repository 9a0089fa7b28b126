"""Saving and loading, under the names of Chainer."""

from hagane.nn.serializers import *  # noqa: F403
from hagane.nn.serializers import __all__ as __all__
from hagane.nn.serializers import hdf5, npz  # noqa: F401
