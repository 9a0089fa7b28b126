"""C that all kernels use, and the C that runs them."""

from __future__ import annotations


def c_source(*names: str) -> str:
    """Return the text of some of the C files here, one after the other."""
    from importlib import resources  # a session from the cache needs none

    folder = resources.files("hagane.native.c")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
