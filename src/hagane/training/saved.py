"""Values of snapshots that older snapshots, or Chainer's, lack."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hagane.nn.serializers.serializer import Serializer


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


def serialize_interval(serializer: Any, trigger: Any, summary: Any = None) -> None:
    """Read or write the trigger of an extension's intervals, and the sums of the one under way.

    Chainer's snapshots lack them: the interval begins anew then, without a word.
    """
    if isinstance(serializer, Serializer):  # (catch_warnings forgets which ones were shown)
        _serialize_parts(serializer, trigger, summary)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _serialize_parts(serializer, trigger, summary)


def _serialize_parts(serializer: Any, trigger: Any, summary: Any) -> None:
    if hasattr(trigger, "serialize"):
        trigger.serialize(serializer["_trigger"])
    if summary is not None:
        summary.serialize(serializer["_summary"])
