"""The keys of a build's manifest, and the values that each may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native import choice_from_json
from hagane.ship.ranges import MOST_AXES

_NAME = re.compile(r"[A-Za-z0-9_]+")
# Of a wrong value so much is told.
_TOLD = 60


def fault_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the first fault of a manifest: a key that it lacks, or one with a wrong value."""
    for key, (expected, fits) in _KEYS.items():
        if key not in manifest:
            if key in _OPTIONAL:
                continue
            return f"lacks the key '{key}'"
        value = manifest[key]
        if not fits(value):
            told = repr(value)
            told = told if len(told) <= _TOLD else f"{told[:_TOLD]}…"
            return f"has under '{key}': expected {expected}, got {told}"
    return None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _file(value: Any) -> bool:
    return _text(value) and bool(value) and value[0] != "." and not {"/", "\0"} & set(value)


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _described(value: Any) -> bool:
    """Whether this describes an input or output."""
    if not isinstance(value, dict) or not _text(value.get("name")):
        return False
    shape, least, most = (value.get(key) for key in ("shape", "least", "most"))
    if not (isinstance(shape, list) and isinstance(least, list) and isinstance(most, list)):
        return False
    return (
        _is_type(value.get("type"), value.get("dtype"))
        and all(_number(size) for size in (*least, *most))
        and len(shape) == len(least) == len(most) <= MOST_AXES
        and all(_number(dim) or (_text(dim) and bool(dim)) for dim in shape)
    )


def _is_type(code: Any, dtype: Any) -> bool:
    """Whether this is an element type as ONNX numbers it, and its name."""
    try:
        return _number(code) and np.dtype(ir.DataType(code).numpy()).name == dtype
    except (ValueError, TypeError):
        return False


def _sums(value: Any) -> bool:
    return isinstance(value, dict) and _text(value.get("library")) and _text(value.get("weights"))


def _choices(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    try:
        return all(
            _text(key) and choice_from_json(found) is not None for key, found in value.items()
        )
    except ValueError:
        return False


_FILE = "the name of a file beside it"
_KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("version", "target", "machine", "build", "precision"), ("a text", _text)),
    **dict.fromkeys(("library_sha256", "weights_sha256"), ("a text", _text)),
    "name": ("letters, digits and _", lambda x: _text(x) and _NAME.fullmatch(x) is not None),
    "library": (_FILE, _file),
    "weights": (_FILE, _or_none(_file)),
    **dict.fromkeys(("inputs", "outputs"), ("a list of descriptions", _list_of(_described))),
    "threads": ("a whole number of 0 or more", _number),
    "levels": ("a list of names of folders in this one", _list_of(_file)),
    **dict.fromkeys(
        ("needs", "shapes", "constants", "nodes", "kernels"), ("a list of texts", _list_of(_text))
    ),
    "embedded": ("true or false", lambda value: isinstance(value, bool)),
    "weights_at": ("a place in the library", _or_none(_number)),
    "sums": ("the checksums of library and weights", _sums),
    "choices": ("the forms of layers, by layer", _choices),
}
# Builds of earlier versions lack these.
_OPTIONAL = ("choices", "library_sha256")
