"""Small tools that Chainer's programs import."""

from __future__ import annotations

import collections.abc as collections_abc
import tempfile
import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from hagane.nn.functions.images.windows import get_conv_outsize, get_deconv_outsize
from hagane.nn.functions.sparse import CooMatrix, get_order, to_coo
from hagane.nn.walker_alias import WalkerAlias
from hagane.utils import argument, array, cache, conv, conv_nd, precision, type_check
from hagane.utils.array import size_of_shape, sum_to

__all__ = [
    "CooMatrix",
    "WalkerAlias",
    "argument",
    "array",
    "cache",
    "collections_abc",
    "conv",
    "conv_nd",
    "experimental",
    "force_array",
    "force_type",
    "get_conv_outsize",
    "get_deconv_outsize",
    "get_order",
    "precision",
    "size_of_shape",
    "sum_to",
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


def experimental(api_name: str) -> None:
    """Warn that an interface may change, unless ``disable_experimental_feature_warning`` is set."""
    import hagane

    if not hagane.disable_experimental_feature_warning:
        warnings.warn(
            f"{api_name} is experimental. The interface can change in the future.",
            FutureWarning,
            stacklevel=2,
        )


def tempdir(**kwargs: Any) -> AbstractContextManager[str]:
    """Return a temporary folder, which is removed at the end of the block.

    Args:
        **kwargs: Those of ``tempfile.mkdtemp``, and ``ignore_errors``: whether files that can't be
            removed are left.
    """
    ignored = bool(kwargs.pop("ignore_errors", False))
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=ignored, **kwargs)
