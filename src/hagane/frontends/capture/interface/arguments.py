"""Objects, lists and dicts as arguments of a program, and the changes of the program to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.interface.names import joined
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import PART, written_since
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    DictRef,
    ListRef,
    Ref,
    Tensor,
    Value,
    is_plain,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """A mutable argument or a part of one.

    Attributes:
        path: Its path.
        ref: Its stand-in, or that of the items of an object that is a list or dict.
        before: Its content before the call.
    """

    path: str
    ref: Ref
    before: Any


class Arguments:
    """The mutable parts of the arguments of a call.

    Args:
        core: The interpreter.

    Attributes:
        returned: The keys of the arguments in the result.
        outputs: Tensors with the names of their first outputs, by identity.
    """

    def __init__(self, core: Interpreter):
        self._core = core
        self.returned: set[int] = set()
        self.outputs: dict[int, tuple[Tensor, str]] = {}
        self._given: list[Argument] = []
        self._paths: dict[int, str] = {}
        self._inputs: dict[str, ir.Value] = {}
        self._tensors: int | None = None

    def add(self, path: str, ref: Ref, owner: Ref | None = None) -> None:
        """Hold an object whose changes the caller would see; it has its content.

        Args:
            path: Its path.
            ref: Its stand-in.
            owner: The object that it is the items of.
        """
        content = self._core.heap[ref]
        kept = dict(content) if isinstance(content, dict) else content
        self._given.append(Argument(path, ref, kept))
        self._paths.setdefault((owner or ref).key, path)

    def add_tensor(self, path: str, tensor: Tensor) -> None:
        """Hold a tensor that is a part of an argument: the program may write into its memory."""
        heap = self._core.heap
        if self._tensors is None:
            self._tensors = heap.new({})
        tensor.value.meta[PART] = path
        self._inputs[path] = tensor.value
        heap[self._tensors][path] = tensor

    def path_of(self, value: Value) -> str | None:
        """Return the path of an argument or a part of one; None for other values."""
        if not isinstance(value, Instance | ListRef | DictRef):
            return None
        return self._paths.get(value.key)

    def path_of_tensor(self, tensor: Tensor) -> str:
        """Return the path of a tensor that is an argument or a part of one; empty for others."""
        given = {} if self._tensors is None else self._core.heap[self._tensors]
        return next((path for path, one in given.items() if one is tensor), "")

    def bases(self) -> dict[ir.Value, str]:
        """Return the tensors in which results may lie, with their paths: as they are at the end."""
        given = {} if self._tensors is None else self._core.heap[self._tensors]
        return {tensor.value: path for path, tensor in given.items()}

    def changed(self) -> Iterator[tuple[Argument, Any]]:
        """Yield the changed arguments, with their content after the call."""
        for argument in self._given:
            now = self._core.heap[argument.ref]
            if not same_content(argument.before, now):
                yield argument, now

    def written(self) -> dict[str, Tensor]:
        """Return the tensors, by path, whose memory the call writes, with their new content.

        Raises:
            CheckError: One may have been written under the name of one of several tensors.
        """
        if self._tensors is None:
            return {}
        now: dict[str, Tensor] = self._core.heap[self._tensors]
        emit = self._core.emit
        assert isinstance(emit, GraphEmitter)
        for path, tensor in now.items():
            value = tensor.value
            place = written_since(value, emit.born(value), emit.written(), stale=emit.stale)
            if place is not None:
                raise CheckError(
                    "capture",
                    f"the operation in place at {place} changes one of several tensors, of which "
                    f"the argument '{path}' may be one; make a new tensor there",
                )
        return {path: t for path, t in now.items() if t.value is not self._inputs[path]}

    def changed_numbers(self) -> set[str]:
        """Return the paths of known numbers that the call changes."""
        found = set()
        for argument, now in self.changed():
            before = argument.before
            pairs = before.items() if isinstance(before, dict) else ()
            for name, old in pairs:
                new = now.get(name)
                is_number = type(old) in (int, float) and not isinstance(new, Tensor)
                if is_number and new is not None and not equal(old, new):
                    found.add(joined(argument.path, name))
        return found


def equal(before: Value, now: Value) -> bool:
    """Whether two values are known and the same, or tuples of the same."""
    if is_plain(before) and is_plain(now) and not isinstance(before, tuple):
        return type(before) is type(now) and bool(before == now)
    return isinstance(before, tuple) and isinstance(now, tuple) and before == now


def same_content(before: Any, now: Any) -> bool:
    """Whether the content of a list, dict, set or object is the same after a call."""
    if isinstance(before, dict):
        return (
            isinstance(now, dict)
            and [*before] == [*now]
            and all(
                a is b or equal(a, b) for a, b in zip(before.values(), now.values(), strict=True)
            )
        )
    if isinstance(before, tuple | list) and isinstance(now, tuple | list):
        return len(before) == len(now) and all(
            a is b or equal(a, b) for a, b in zip(before, now, strict=True)
        )
    return before is now or bool(np.all(before == now))


__all__ = ["Argument", "Arguments", "equal", "same_content"]
