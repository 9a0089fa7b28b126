"""Hooks of optimizers and rules, called before or after an update."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


class Hooks:
    """Hooks by name and timing.

    Args:
        invalid_timing_fallback: Whether a hook whose timing is neither is called before.
        call: How one is called.
    """

    def __init__(self, invalid_timing_fallback: bool = False, call: Any = None):
        self._before: dict[str, Any] = {}
        self._after: dict[str, Any] = {}
        self._fallback = invalid_timing_fallback
        self._call = call

    def __len__(self) -> int:
        return len(self._before) + len(self._after)

    def add_hook(self, hook: Callable[..., Any], name: str | None, timing: str) -> None:
        """Register a hook.

        Raises:
            TypeError: It cannot be called.
            ValueError: It has no name, or an unknown timing.
            KeyError: There is one of that name.
        """
        if not callable(hook):
            raise TypeError("hook function must be callable")
        if timing not in ("pre", "post", "auto"):
            raise ValueError(f"timing must be one of 'pre', 'post' and 'auto', got {timing!r}")
        if timing == "auto":
            timing = getattr(hook, "timing", "pre")
            if timing not in ("pre", "post") and self._fallback:
                warnings.warn(
                    "Hook timing attribute not in ('pre', 'post'), defaulting timing to 'pre'.",
                    stacklevel=3,
                )
                timing = "pre"
        if name is None:
            name = getattr(hook, "name", getattr(hook, "__name__", None))
            if name is None:
                raise ValueError("the name of the hook function is not specified")
        if name in self._before or name in self._after:
            raise KeyError(f'hook "{name}" already exists')
        (self._before if timing == "pre" else self._after)[name] = hook

    def remove_hook(self, name: str) -> None:
        """Take a hook away.

        Raises:
            KeyError: There is none of that name.
        """
        del (self._before if name in self._before else self._after)[name]

    def call_hooks(self, timing: str, args: tuple[Any, ...]) -> None:
        """Call the hooks of a timing in the order in which they were registered."""
        if timing not in ("pre", "post"):
            raise ValueError(f"timing must be either 'pre' or 'post', got {timing!r}")
        for hook in list((self._before if timing == "pre" else self._after).values()):
            if self._call is None:
                hook(*args)
            else:
                self._call(hook)
