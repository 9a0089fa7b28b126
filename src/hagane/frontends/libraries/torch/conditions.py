"""Conditions and marks that programs give PyTorch's compiler, as programs.

Conditions (``torch/__init__.py`` of PyTorch's sources) raise an error unless they hold. Marks
(https://docs.pytorch.org/docs/stable/torch.compiler_api.html) change no result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def check_with(error_type: Any, cond: Any, message: Any = None) -> None:
    """Raise an error unless a condition holds."""
    if not cond:
        if message is None:
            raise error_type("Expected cond to be True, but got False.")
        raise error_type(message())


def check(cond: Any, message: Any = None) -> None:
    """Raise ``RuntimeError`` unless a condition holds."""
    check_with(RuntimeError, cond, message)


def check_index(cond: Any, message: Any = None) -> None:
    """Raise ``IndexError`` unless a condition holds."""
    check_with(IndexError, cond, message)


def check_value(cond: Any, message: Any = None) -> None:
    """Raise ``ValueError`` unless a condition holds."""
    check_with(ValueError, cond, message)


def check_type(cond: Any, message: Any = None) -> None:
    """Raise ``TypeError`` unless a condition holds."""
    check_with(TypeError, cond, message)


def check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raise ``NotImplementedError`` unless a condition holds."""
    check_with(NotImplementedError, cond, message)


def check_tensor_all_with(error_type: Any, cond: Any, message: Any = None) -> None:
    """Raise an error unless all elements are true."""
    check_with(error_type, bool(cond.all()), message)


def check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise ``RuntimeError`` unless all elements are true."""
    check_tensor_all_with(RuntimeError, cond, message)


def check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raise ``RuntimeError`` unless a number is a size."""
    check(i >= 0, message)
    if max is not None:
        check(i <= max, message)


def mark(*_: Any, **__: Any) -> None:
    """Do nothing."""


PROGRAMS: dict[str, Callable[..., Any]] = {
    "_check": check,
    "_check_with": check_with,
    "_check_index": check_index,
    "_check_value": check_value,
    "_check_type": check_type,
    "_check_not_implemented": check_not_implemented,
    "_check_tensor_all": check_tensor_all,
    "_check_tensor_all_with": check_tensor_all_with,
    "_check_is_size": check_is_size,
    "_dynamo.mark_dynamic": mark,
    "_dynamo.maybe_mark_dynamic": mark,
    "_dynamo.mark_static": mark,
    "_dynamo.mark_static_address": mark,
    "_dynamo.graph_break": mark,
}
