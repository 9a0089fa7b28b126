"""The arguments that functions of libraries write, by their names, for programs over types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.frontends.libraries.memory.viewing import is_view
from hagane.frontends.libraries.memory.writing import tensors_in
from hagane.frontends.libraries.table import arguments_of, places_of, takes
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import own
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    ListRef,
    Tensor,
    Value,
)

# Operators of statements such as x += y.
IN_PLACE = frozenset(
    f"i{name}"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                 "and", "or", "xor", "lshift", "rshift")
)  # fmt: skip
# Functions without a last underscore that write their first argument.
_FIRST = frozenset(
    ("numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask", "numpy.fill_diagonal",
     "numpy.put_along_axis", "numpy.random.shuffle", "numpy.random.Generator.shuffle",
     *(f"numpy.ndarray.{name}" for name in (
         "fill", "sort", "partition", "put", "resize", "itemset", "setfield", "byteswap")),
     "torch.nn.utils.vector_to_parameters")
)  # fmt: skip
UNCHANGED = ("requires_grad_", "rename_", "share_memory_", "detach_", "ix_")
_COPYING = ("clone", "copy", "tensor", "deepcopy")


def written(
    core: Core, name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Iterator[Tensor]:
    """Yield the tensors that a call writes."""
    last = name.rpartition(".")[2]
    if last in UNCHANGED:
        return
    yield from _held(core, keywords.get("out"))
    in_place = last.endswith("_") and not last.endswith("__")
    if in_place or name in _FIRST or last == "at":
        first = arguments[0] if arguments else keywords.get("input")
        yield from _held(core, first)
    elif name.startswith("torch.distributed."):
        for value in (*arguments, *keywords.values()):
            yield from _held(core, value)
    elif name.startswith("torch.nn.") and _is_told(core, handler, arguments, keywords):
        yield from _held(core, [v for v in arguments if isinstance(v, Tensor)][:1])
    elif name.startswith("numpy."):
        ufunc = getattr(np, last, None)
        if isinstance(ufunc, np.ufunc):
            yield from _held(core, list(arguments[ufunc.nin :]))


def _is_told(
    core: Core, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> bool:
    """Whether a layer or a function is told to work in place."""
    if arguments and isinstance(arguments[0], Instance):
        return core.heap[arguments[0]].get("inplace") is True
    return handler is not None and is_in_place(handler, arguments, keywords)


def is_in_place(handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Whether a call says ``inplace=True``."""
    names = [*arguments_of(handler)]
    place = names.index("inplace") if "inplace" in names else 1  # as in relu(input, inplace)
    given = arguments[place] if place < len(arguments) else False
    return keywords.get("inplace", given) is True


def apart_from_out(name: str, handler: Any, keywords: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return the keywords without a tensor for the result that a function of PyTorch lacks."""
    out = keywords.get("out")
    if not isinstance(out, Tensor) or not name.startswith("torch.") or takes(handler, "out"):
        return keywords
    return {key: value for key, value in keywords.items() if key != "out"}


def _array_for_result(
    name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Tensor | None:
    """Return the array that a function of NumPy is given for its result; None without one."""
    names = places_of(handler) if name.startswith("numpy.") else []
    if "out" not in names:  # ufuncs see to theirs
        return None
    place = names.index("out")
    out = keywords.get("out", arguments[place] if place < len(arguments) else None)
    return out if isinstance(out, Tensor) else None


def _held(core: Core, value: Value) -> Iterator[Tensor]:
    if isinstance(value, ListRef):
        value = core.unwrap_shallow(value)
    yield from tensors_in(value)


def noted(
    core: Core, name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value],
    made: Value,
) -> Value:  # fmt: skip
    """Return the result of a call; note what that has written, and whose memory the result has."""
    if isinstance(made, Tensor):
        made = _array_for_result(name, handler, arguments, keywords) or made
    if core.emit.writes is None:
        return made
    targets = list(written(core, name, handler, arguments, keywords))
    for target in targets:
        core.emit.write(target)
        if isinstance(made, Tensor):
            core.emit.share(made, target)
    whole = arguments[0] if arguments else None
    if targets or not isinstance(whole, Tensor):
        return made
    if is_view(name):
        for view in _held(core, made):
            core.emit.share(view, whole)
    elif name.rpartition(".")[2] in _COPYING and isinstance(made, Tensor):
        if made.value is whole.value:
            made = replace(made, value=core.op("Identity", made).value)
        own(made.value)
    return made


def note_statement(core: Core, left: Value, made: Value) -> None:
    """Note that a statement such as ``x += y`` has written its left side, unless it cannot."""
    if core.emit.writes is None or not isinstance(left, Tensor):
        return
    scalar = left.kind == "numpy.ndarray" and left.shape == ()
    if scalar and left.value.producer() is not None:  # computed: a scalar of NumPy
        return
    core.emit.write(left)
    if isinstance(made, Tensor):
        core.emit.share(made, left)


__all__ = ["IN_PLACE", "UNCHANGED", "apart_from_out", "is_in_place", "note_statement", "noted"]
