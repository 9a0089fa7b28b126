"""Properties that are computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hagane.nn.autograd.configuration import config

__all__ = ["cached_property"]


class cached_property:  # noqa: N801
    """A read-only property kept with its object: once with, once without recorded computations."""

    __name__: str

    def __init__(self, func: Callable[[Any], Any]):
        functools.update_wrapper(self, func)  # type: ignore[arg-type]
        self.func = func

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        if obj is None:
            return self
        kept = obj.__dict__.setdefault(self.__name__, {})
        recorded = config.enable_backprop
        if recorded not in kept:
            kept[recorded] = self.func(obj)
        return kept[recorded]

    def __set__(self, obj: Any, value: Any) -> None:
        raise AttributeError(f"attribute '{self.__name__}' of {type(obj).__name__} is readonly")
