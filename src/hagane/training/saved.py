"""Values of snapshots that older snapshots, or Chainer's, lack."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def optional(
    serializer: Any, key: str, value: Any, missing: Any = None, warning: str | None = None
) -> Any:
    """Return a serializer's form of a value; ``missing`` where the snapshot lacks it.

    Args:
        serializer: Reads or writes.
        key: The name of the value.
        value: The value as it is.
        missing: Its stand-in.
        warning: Text of the warning that it is missing, None for none.
    """
    try:
        return serializer(key, value)
    except KeyError:
        if warning is not None:
            warnings.warn(f"the snapshot lacks '{key}': {warning}", stacklevel=3)
        return missing


def number(value: Any) -> Any:
    """Return a loaded number as Python's, None as None."""
    return value.item() if isinstance(value, np.ndarray | np.generic) else value
