"""The assumptions of a graph about the running Python, compared before each run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from types import FunctionType
from typing import Any

import onnx_ir as ir

from hagane.frontends.capture.interface.reads import ContentRead, NameRead, Read
from hagane.frontends.python.values.values import MISSING

# Where all that a function without variables of others holds is found.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
_OTHER = "a tensor that is read has another shape or element type"


def _is_simple(found: Any) -> bool:
    """Whether an object is a function whose content is its defaults."""
    return isinstance(found, FunctionType) and not found.__kwdefaults__ and not found.__closure__


def _bits(array: Any) -> tuple[bytes, Any, Any]:
    return array.tobytes(), array.shape, array.dtype


def _is_array(bits: bytes, shape: Any, dtype: Any, now: Any) -> bool:
    """Whether an array is what it was, bit by bit."""
    return bool(now.tobytes() == bits and now.shape == shape and now.dtype == dtype)


class Guards:
    """Compares a graph's reads, weights' types and hooks of modules with their present state.

    A large model reads thousands of names; nearly all have to be the very objects that they were,
    which is found out by one pass in C. Differences are then looked at again, to be described.

    Args:
        reads: The names and contents that were read.
        weights: Tensors of PyTorch, and the initializers that they are.
        modules: Modules of PyTorch, which must have no hooks.
        tensors: All tensors of PyTorch that were read.
    """

    def __init__(
        self,
        reads: Sequence[Read],
        weights: Sequence[tuple[Any, ir.Value]],
        modules: Sequence[Any],
        tensors: Sequence[Any],
    ):
        self._reads = reads
        self._calls: list[Callable[[Any], Any]] = []
        self._arguments: list[Any] = []
        self._values: list[Any] = []
        self._others: list[Read] = []
        for read in reads:
            if isinstance(read, NameRead):
                has = read.names.__contains__
                found = read.value is not MISSING
                if read.value is None or not found:  # what ``get`` returns of a missing name too
                    self._calls.append(has)
                    self._arguments.append(read.name)
                    self._values.append(found)
                if found:
                    self._calls.append(read.names.get)
                    self._arguments.append(read.name)
                    self._values.append(read.value)
            elif isinstance(read, ContentRead) and read.kind in ("class", "count"):
                self._calls.append(read.now)
                self._arguments.append(read.found)
                self._values.append(read.content)
            elif isinstance(read, ContentRead) and _is_simple(read.found):
                for name in _OF_FUNCTIONS:
                    self._calls.append(operator.attrgetter(name))
                    self._arguments.append(read.found)
                    self._values.append(getattr(read.found, name))
            elif isinstance(read, ContentRead) and read.kind == "array":
                self._calls.append(partial(_is_array, *_bits(read.content)))
                self._arguments.append(read.found)
                self._values.append(True)
            else:
                self._others.append(read)
        self._weights = [(t, t.shape, t.dtype, str(value.name)) for t, value in weights]
        constants = {id(t) for t, _ in weights}
        # Of others the program asked no content, but perhaps sizes and types.
        self._weights += [(t, t.shape, t.dtype, "") for t in tensors if id(t) not in constants]
        self._modules = modules

    def broken(self) -> str:
        """Return which of the assumptions no longer holds; empty if all do."""
        now = map(operator.call, self._calls, self._arguments)
        reads = self._others if all(map(is_, now, self._values)) else self._reads
        for read in reads:
            told = read.broken()
            if told:
                return told
        for module in self._modules:
            if module._forward_hooks or module._forward_pre_hooks:
                return f"a {type(module).__name__} has a forward hook now"
        for tensor, shape, dtype, name in self._weights:
            if tensor.shape != shape:
                return f"the weight '{name}' has another shape" if name else _OTHER
            if tensor.dtype is not dtype:
                return f"the weight '{name}' has another element type" if name else _OTHER
        return ""


__all__ = ["Guards"]
