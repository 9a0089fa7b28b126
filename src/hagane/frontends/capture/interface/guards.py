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
from hagane.frontends.capture.interface.unchanged import kept_tensors, unchanged
from hagane.frontends.python.values.values import MISSING

# Where all that a function without variables of others holds is found.
_OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_OTHER = "a tensor that is read has another shape or element type, or is on another device"


def _is_simple(found: Any) -> bool:
    """Whether an object is a function whose content is its defaults."""
    return isinstance(found, FunctionType) and not found.__kwdefaults__ and not found.__closure__


def _bits(array: Any) -> tuple[bytes, Any, Any]:
    return array.tobytes(), array.shape, array.dtype


def _is_array(bits: bytes, shape: Any, dtype: Any, now: Any) -> bool:
    """Whether an array is what it was, bit by bit."""
    return bool(now.tobytes() == bits and now.shape == shape and now.dtype == dtype)


class _Identities:
    """Compares objects with the very ones that they were, by one pass in C if there can be one.

    Args:
        reads: The names and contents that were read.
        modules: Modules of PyTorch, of which those without hooks must have none.

    Attributes:
        others: Reads that identities do not tell.
    """

    def __init__(self, reads: Sequence[Read], modules: Sequence[Any]):
        self.others: list[Read] = []
        self._calls: list[Callable[[Any], Any]] = []
        self._arguments: list[Any] = []
        self._values: list[Any] = []
        names: list[Any] = []
        classes: list[Any] = []
        items: list[Any] = []
        empty: list[Any] = []
        module = unchanged()
        for read in reads:
            if isinstance(read, NameRead):
                if module is not None and type(read.names) is dict:
                    names += (read.names, read.name, read.value)
                else:
                    self._name(read)
            elif not isinstance(read, ContentRead):
                self.others.append(read)
            elif read.kind == "class" and module is not None:
                classes += (read.found, read.content)
            elif read.kind in ("class", "count"):
                self._add(read.now, read.found, read.content)
            elif type(read.found) in (list, dict) and module is not None:
                items += (read.found, _in_turn(read))
            elif _is_simple(read.found):
                for name in _OF_FUNCTIONS:
                    self._add(operator.attrgetter(name), read.found, getattr(read.found, name))
            elif read.kind == "array":
                self._add(partial(_is_array, *_bits(read.content)), read.found, True)
            else:
                self.others.append(read)
        for found in modules:
            for name in _HOOKS:
                hooks = vars(found).get(name)
                if hooks:
                    continue  # their content is among the reads
                if module is not None and isinstance(hooks, dict):
                    names += (vars(found), name, hooks)
                    empty.append(hooks)
                else:
                    self._add(operator.not_, getattr(found, name), True)
        self._in_c: Callable[[], bool] | None = None
        if module is not None:
            plan = (tuple(names), tuple(classes), tuple(items), tuple(empty))
            self._in_c = partial(module.holds, MISSING, *plan)

    def _add(self, call: Callable[[Any], Any], argument: Any, value: Any) -> None:
        self._calls.append(call)
        self._arguments.append(argument)
        self._values.append(value)

    def _name(self, read: NameRead) -> None:
        found = read.value is not MISSING
        if read.value is None or not found:  # what ``get`` returns of a missing name too
            self._add(read.names.__contains__, read.name, found)
        if found:
            self._add(read.names.get, read.name, read.value)

    def hold(self) -> bool:
        """Whether all are the very ones that they were."""
        if self._in_c is not None and not self._in_c():
            return False
        return all(map(is_, map(operator.call, self._calls, self._arguments), self._values))


def _in_turn(read: ContentRead) -> tuple[Any, ...]:
    """Return the items of a list, or the keys and values of a dict in turn."""
    if isinstance(read.found, list):
        return tuple(read.content)
    half = len(read.content) // 2
    pairs = zip(read.content[:half], read.content[half:], strict=True)
    return tuple(part for pair in pairs for part in pair)


class Guards:
    """Compares a graph's reads, weights' types and hooks of modules with their present state.

    A large model reads thousands of names; nearly all have to be the very objects that they were,
    which is found out by one pass in C. Differences are then looked at again, to be described.

    Args:
        reads: The names and contents that were read.
        weights: Tensors of PyTorch, and the initializers that they are.
        modules: Modules of PyTorch, of which those without hooks must have none.
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
        self._identities = _Identities(reads, modules)
        self._weights = [(t, t.shape, t.dtype, t.device, str(value.name)) for t, value in weights]
        constants = {id(t) for t, _ in weights}
        # Of others the program asked no content, but perhaps sizes and types.
        self._weights += [
            (t, t.shape, t.dtype, t.device, "") for t in tensors if id(t) not in constants
        ]
        of_weights, of_others = self._weights[: len(weights)], self._weights[len(weights) :]
        self._kept_weights = kept_tensors([t for t, *_ in of_weights], content=False)
        self._kept_others = kept_tensors([t for t, *_ in of_others], content=False)
        self._modules = modules

    def broken(self, *, weights_rest: bool = False) -> str:
        """Return which of the assumptions no longer holds; empty if all do.

        Args:
            weights_rest: Whether the weights are known to have the types that they had.
        """
        hold = self._identities.hold()
        for read in self._identities.others if hold else self._reads:
            told = read.broken()
            if told:
                return told
        if not hold:
            for module in self._modules:
                if module._forward_hooks or module._forward_pre_hooks:
                    return f"the forward hooks of a {type(module).__name__} are others now"
        if self._kept_others.other(0) >= 0:
            return self._other_tensor()
        if not weights_rest and self._kept_weights.other(0) >= 0:
            return self._other_tensor()
        return ""

    def _other_tensor(self) -> str:
        for tensor, shape, dtype, device, name in self._weights:
            if tensor.shape != shape:
                return f"the weight '{name}' has another shape" if name else _OTHER
            if tensor.dtype is not dtype:
                return f"the weight '{name}' has another element type" if name else _OTHER
            if tensor.device != device:
                return f"the weight '{name}' is on {tensor.device}" if name else _OTHER
        return ""


__all__ = ["Guards"]
