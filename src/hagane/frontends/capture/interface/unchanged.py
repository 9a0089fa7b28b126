"""Tensors of PyTorch and names of the running Python, compared with what they were, in C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Protocol

from hagane.machine.cache import load_module

WHOLE = 4096  # bytes up to which the content of a tensor is compared whole, as in unchanged.c
SAMPLES = 16  # elements of a larger one


def unchanged() -> Any | None:
    """Return the module in C; None where none can be made."""
    return load_module("unchanged", _source)


@cache
def _source() -> str:
    folder = resources.files("hagane.frontends.capture.interface")
    return (folder / "unchanged.c").read_text(encoding="utf-8")


class Kept(Protocol):
    """Tensors as they were."""

    def other(self, start: int) -> int:
        """Return the first tensor from ``start`` on that is not as it was kept; -1 if all are."""

    def keep(self, place: int) -> None:
        """Keep a tensor from now on as it is now."""


def kept_tensors(tensors: Sequence[Any], *, content: bool) -> Kept:
    """Return tensors of PyTorch as they are now.

    Args:
        tensors: The tensors, on the CPU.
        content: Whether their memory, strides, versions and content count, not only their element
            types and shapes. PyTorch counts the changes of a tensor, but not those through its
            ``data``: so tensors of a page or less are compared whole, and of larger ones some
            elements, spread over them. Updates change nearly all, and to compare them whole
            would take as long as many a product.
    """
    base: Any = sys.modules["torch"].Tensor if tensors else None
    exchange = getattr(base, "__dlpack_c_exchange_api__", None)
    module = unchanged() if exchange is not None else None
    if module is not None:
        try:
            made: Kept = module.Tensors(tuple(tensors), exchange, base._version, content)
        except (BufferError, RuntimeError, TypeError):
            pass  # element types or layouts that DLPack does not know
        else:
            return made
    return PlainlyKept(tensors, content=content)


class PlainlyKept:
    """Tensors as they were, compared by PyTorch's own methods.

    Args:
        tensors: The tensors.
        content: As for :func:`kept_tensors`.
    """

    def __init__(self, tensors: Sequence[Any], *, content: bool):
        self._tensors = list(tensors)
        self._content = content
        self._kept = [self._now(i) for i in range(len(self._tensors))]

    def other(self, start: int) -> int:
        """Return the first tensor from ``start`` on that is not as it was kept; -1 if all are."""
        for place in range(start, len(self._tensors)):
            if self._now(place) != self._kept[place]:
                return place
        return -1

    def keep(self, place: int) -> None:
        """Keep a tensor from now on as it is now."""
        self._kept[place] = self._now(place)

    def _now(self, place: int) -> tuple[Any, ...]:
        tensor = self._tensors[place]
        types = tensor.dtype, tensor.shape, tensor.device
        if not self._content:
            return types
        version = -1 if tensor.is_inference() else tensor._version
        return (*types, tensor.stride(), tensor.data_ptr(), version, _sampled(tensor))


def _sampled(tensor: Any) -> bytes:
    """Return the content of a tensor, or of a larger one some elements, as bytes."""
    torch = sys.modules["torch"]
    plain = tensor.detach().resolve_conj().resolve_neg()
    size = plain.numel()
    if size * plain.element_size() > WHOLE or not plain.is_contiguous():
        step = max(1, (size - 1) // (SAMPLES - 1))
        flat = torch.arange(0, size, step)
        index, places = flat, []
        for length in reversed(plain.shape):
            places.append(index % length)
            index = index // length
        plain = plain[tuple(reversed(places))]
    return bytes(plain.reshape(-1).view(torch.uint8).numpy()) if size else b""


__all__ = ["Kept", "PlainlyKept", "kept_tensors", "unchanged"]
