"""Functions that decorators made of others: which of them change the meaning of the inner one."""

from __future__ import annotations

import types
from typing import Any

# Packages whose wrappers around functions change no result, but by the contexts that they enter.
_TRANSPARENT = ("torch", "jaxtyping", "beartype", "typeguard")
_TRANSFORMS = "torch._functorch"  # but those whose wrappers compute something else: vmap, grad

# Modules with abstract classes and others whose methods the classes of users inherit.
MIXINS = ("collections.abc", "_collections_abc", "collections")


def adds_nothing(wrapper: Any) -> bool:
    """Whether a wrapper calls the function that it wraps with the arguments that it gets."""
    code = getattr(wrapper, "__code__", None)
    if code is None:  # functools.lru_cache
        return type(wrapper).__module__ == "functools"
    module = wrapper.__globals__.get("__name__") or ""
    return module.partition(".")[0] in _TRANSPARENT and not module.startswith(_TRANSFORMS)


def managers_of(wrapper: Any, *, gradients: bool) -> list[Any]:
    """Return the context managers of PyTorch within which a wrapper calls its function.

    Args:
        wrapper: Such as ``torch.no_grad()`` and ``torch.autocast("cpu")`` make as decorators.
        gradients: Whether those count that only say whether gradients are wanted.
    """
    names = getattr(getattr(wrapper, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(wrapper, "__closure__", None) or (), strict=False))
    if "autocast_instance" in cells:
        return [cells["autocast_instance"].cell_contents]
    if "ctx_factory" not in cells:
        return []
    manager = getattr(cells["ctx_factory"].cell_contents, "__self__", None)
    return [manager] if gradients and "grad_mode" in type(manager).__module__ else []


def is_manager(wrapper: types.FunctionType) -> bool:
    """Whether a function is a result of contextlib.contextmanager."""
    return wrapper.__globals__.get("__name__") == "contextlib" and hasattr(wrapper, "__wrapped__")


def is_inner(found: Any) -> bool:
    """Whether a function is none of contextlib's own."""
    return bool(found.__globals__.get("__name__") != "contextlib")


def is_method_of_library(found: types.FunctionType) -> bool:
    """Whether a function of the standard library's is a method that classes of users have."""
    if found.__module__ == "functools":
        return "_from_" in found.__qualname__  # comparisons that functools.total_ordering adds
    return found.__module__ in MIXINS and "." in found.__qualname__
