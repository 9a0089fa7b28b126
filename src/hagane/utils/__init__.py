"""Small tools that Chainer's programs import."""

from __future__ import annotations

import collections.abc as collections_abc
import tempfile
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from hagane.nn.functions.sparse import CooMatrix, get_order, to_coo
from hagane.nn.functions.windows import get_conv_outsize, get_deconv_outsize
from hagane.nn.walker_alias import WalkerAlias
from hagane.utils import argument, conv, conv_nd, type_check

__all__ = [
    "CooMatrix",
    "WalkerAlias",
    "argument",
    "collections_abc",
    "conv",
    "conv_nd",
    "force_array",
    "force_type",
    "get_conv_outsize",
    "get_deconv_outsize",
    "get_order",
    "size_of_shape",
    "tempdir",
    "to_coo",
    "type_check",
]


def force_array(x: Any, dtype: Any = None) -> Any:
    """Return a number as an array without axes, and an array as it is, of an element type."""
    found = np.array(x) if np.isscalar(x) else x
    return found if dtype is None else found.astype(dtype, copy=False)


def force_type(dtype: Any, value: Any) -> Any:
    """Return a number or an array in an element type."""
    return dtype.type(value) if np.isscalar(value) else value.astype(dtype, copy=False)


def size_of_shape(shape: Any) -> int:
    """Return the number of elements."""
    return int(np.prod(shape, dtype=np.int64))


def tempdir(**kwargs: Any) -> AbstractContextManager[str]:
    """Return a temporary folder, which is removed at the end of the block.

    Args:
        **kwargs: Those of ``tempfile.mkdtemp``, and ``ignore_errors``: whether files that can't be
            removed are left.
    """
    ignored = bool(kwargs.pop("ignore_errors", False))
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=ignored, **kwargs)
