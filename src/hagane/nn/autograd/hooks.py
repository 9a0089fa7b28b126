"""Hooks, called before and after every function."""

from __future__ import annotations

import threading
from typing import Any

_LOCAL = threading.local()


def get_function_hooks() -> dict[str, FunctionHook]:
    """Return the hooks of this thread by name."""
    try:
        return _LOCAL.hooks
    except AttributeError:
        _LOCAL.hooks = {}
        return _LOCAL.hooks


class FunctionHook:
    """Base of hooks around functions; used by ``with`` or ``FunctionNode.add_hook``.

    Attributes:
        name: Under which it is registered; one hook a name.
    """

    name = "FunctionHook"

    def __enter__(self) -> Any:
        hooks = get_function_hooks()
        if self.name in hooks:
            raise KeyError(f"a function hook named '{self.name}' is already in use")
        hooks[self.name] = self
        self.added(None)
        return self

    def __exit__(self, *details: Any) -> None:
        hooks = get_function_hooks()
        hooks[self.name].deleted(None)
        del hooks[self.name]

    def added(self, function: Any) -> None:
        """Called when it is registered: with a function, or with None for all."""

    def deleted(self, function: Any) -> None:
        """Called when it is taken away."""

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        """Called before a function computes.

        Args:
            function: Its node.
            in_data: The arrays of its inputs.
        """

    def forward_postprocess(self, function: Any, in_data: Any) -> None:
        """Called after a function computed."""

    def backward_preprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        """Called before the gradient of a function.

        Args:
            function: Its node.
            in_data: The arrays of its inputs, None where not retained.
            out_grad: The gradients of its outputs, None where there is none.
        """

    def backward_postprocess(self, function: Any, in_data: Any, out_grad: Any) -> None:
        """Called after the gradient of a function."""


def hooks_of(function: Any) -> list[FunctionHook]:
    """Return the hooks of this thread, and those of a function alone.

    They see a call of a function of the library, and not the operators that it is made of.
    """
    if function.application is not None:
        return []
    general = get_function_hooks()
    own = function._local_function_hooks
    return list(general.values()) if not own else list({**general, **own}.values())
