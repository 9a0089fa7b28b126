"""Hooks, called before and after every link."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

_LOCAL = threading.local()


def get_link_hooks() -> dict[str, LinkHook]:
    """Return the hooks of this thread by name."""
    try:
        return _LOCAL.hooks
    except AttributeError:
        _LOCAL.hooks = {}
        return _LOCAL.hooks


@dataclass
class ForwardPreprocess:
    """A hook's news before a link runs.

    Attributes:
        link: The link.
        forward_name: The name of its method.
        args: Positional arguments.
        kwargs: Named arguments.
    """

    link: Any
    forward_name: str
    args: Any
    kwargs: Any

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} link={self.link!r}, forward_name={self.forward_name!r}, "
            f"args={self.args!r}, kwargs={self.kwargs!r}>"
        )


@dataclass(repr=False)
class ForwardPostprocess(ForwardPreprocess):
    """A hook's news after a link ran.

    Attributes:
        out: Its result.
    """

    out: Any = None


class LinkHook:
    """Base of hooks around links; used by ``with`` or ``Link.add_hook``.

    Attributes:
        name: Under which it is registered; one hook a name.
    """

    name = "LinkHook"

    def __enter__(self) -> Any:
        hooks = get_link_hooks()
        if self.name in hooks:
            raise KeyError(f"a link hook named '{self.name}' is already in use")
        hooks[self.name] = self
        self.added(None)
        return self

    def __exit__(self, *details: Any) -> None:
        hooks = get_link_hooks()
        hooks[self.name].deleted(None)
        del hooks[self.name]

    def added(self, link: Any) -> None:
        """Called when it is registered: with a link, or with None for all."""

    def deleted(self, link: Any) -> None:
        """Called when it is taken away."""

    def forward_preprocess(self, args: ForwardPreprocess) -> None:
        """Called before a link runs."""

    def forward_postprocess(self, args: ForwardPostprocess) -> None:
        """Called after a link ran."""
