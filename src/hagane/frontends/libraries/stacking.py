"""Lists whose length the data decide, as arrays: stacked, joined, or made arrays of."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Choice,
    DType,
    Host,
    ListRef,
    Many,
    Real,
    Tensor,
    Unknown,
    Value,
    alternatives,
    is_size,
)

_ARRAYS = ("numpy.array", "numpy.asarray", "torch.tensor", "torch.as_tensor")
_PYTHON = {float: ir.DataType.DOUBLE, int: ir.DataType.INT64, bool: ir.DataType.BOOL}
_KINDS = {"numpy": "numpy.ndarray", "torch": "torch.Tensor"}
_OF_NONE = {"torch": RuntimeError, "numpy": ValueError, "chainer": ValueError}
_AXIS = ("stack", "cat", "concat", "concatenate", "vstack", "hstack")


def stacked(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Tensor | None:
    """Return the stack of a list whose length the data decide."""
    many = arguments[0] if arguments else None
    if not isinstance(many, Many):
        return None
    last = name.rpartition(".")[2]
    if many.at is not None and many.stacked is None and many.uneven is None and last in _AXIS:
        many = _settled(core, many)  # such as the pieces of x.split(32)
    root = name.partition(".")[0]
    if last in _AXIS and root in _OF_NONE:
        empty = core.compare(ast.Eq, many.length, 0)
        core.fail_where(empty, _OF_NONE[root], f"{name} of no tensors")
    if many.uneven is not None:
        return _of_uneven(core, many, name, arguments, keywords)
    if many.stacked is None or many.stacked.shape is None:
        return None
    x = many.stacked
    if name in _ARRAYS:
        return listed_array(core, many, x, name, arguments, keywords)
    if last not in _AXIS or root not in _OF_NONE:
        return None
    rank = len(many.stacked.shape)
    axis = _axis(name, rank - 1, arguments, keywords)
    if not isinstance(axis, int):
        return None
    if last == "stack":
        axis %= rank
    elif rank == 1:
        return None
    elif last == "vstack" and rank == 2:
        return x
    else:
        axis %= rank - 1
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    made: Tensor = core.op("Transpose", x, perm=order) if axis else core.op("Identity", x)
    if last == "stack":
        return made
    shape = list(made.shape or ())
    joined = [*shape[:axis], -1, *shape[axis + 2 :]]
    whole: Tensor = core.op("Reshape", made, core.emit.constant(joined, ir.DataType.INT64))
    return whole


def _settled(core: Core, many: Many) -> Many:
    """Return items that follow a rule as those of a list, held by tensors."""
    made = core.domain.call(Host(list), [core.new_list(many)], {})
    content = core.heap[made] if isinstance(made, ListRef) else None
    return content if isinstance(content, Many) else many


def row_of(core: Core, many: Many) -> Value:
    """Return the value that stands for all items of a list, made plain for an array of them.

    Lists among them are Python's own, and a choice between numbers of one type is an open number.

    Returns:
        A tensor, a number, nested lists of both; unknown where a part is.
    """
    return _plain(core, core.unwrap(many.element))


def _plain(core: Core, value: Value) -> Value:
    if isinstance(value, list | tuple):
        parts = [_plain(core, part) for part in value]
        return next((part for part in parts if isinstance(part, Unknown)), parts)
    if not isinstance(value, Choice):
        return value
    options = alternatives(value)
    if all(map(is_size, options)):
        return core.emit.fresh("item")
    if all(isinstance(option, float | Real) for option in options):
        return Real()
    return core.lost("an array of values of which only the run knows the types")


def _axis(name: str, rank: int, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the axis along which a function joins tensors of a rank."""
    last = name.rpartition(".")[2]
    default = 1 if name == "chainer.functions.concat" else 0
    axis = keywords.get("dim", keywords.get("axis", (*arguments, default)[1]))
    return {"vstack": 0, "hstack": 0 if rank == 1 else 1}.get(last, axis)


def _of_uneven(
    core: Core,
    many: Many,
    name: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Tensor | None:
    """Return tensors of which one size differs joined along its axis, or padded to the largest."""
    last, rank = name.rpartition(".")[2], many.uneven.first.rank
    if last == "pad_sequence":
        return _padded(core, many, name, arguments, keywords)
    if name in _ARRAYS and len(many.uneven.axes) == 1:
        return listed_array(core, many, many.uneven.even(), name, arguments, keywords)
    if last not in _AXIS or name.partition(".")[0] not in _OF_NONE:
        return None
    axis = _axis(name, rank, arguments, keywords)
    if not isinstance(axis, int):
        raise CheckError(
            "capture",
            f"'{name}' of a list whose length the data decide, along an axis that only the run "
            "knows; write the number of the axis",
        )
    if last == "stack" or (last == "vstack" and rank == 1):
        return _of_one_size(core, many, axis % (rank + 1))
    if axis % rank != many.uneven.axes[0]:
        raise CheckError(
            "capture",
            f"'{name}' joins tensors along axis {axis}, and their sizes differ in axis "
            f"{many.uneven.axes[0]}",
        )
    made: Tensor = many.uneven.joined()
    return made


def _of_one_size(core: Core, many: Many, axis: int) -> Tensor:
    """Return the stack of tensors of which nobody but the run knows that they are of one size."""
    x: Tensor = many.uneven.even()
    order = [*range(1, axis + 1), 0, *range(axis + 1, x.rank)]
    return core.op("Transpose", x, perm=order) if axis else x


def _padded(
    core: Core,
    many: Many,
    name: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Tensor | None:
    """Return the result of ``pad_sequence``."""
    if many.uneven.axes != (0,):
        return None
    library = name.partition(".")[0]
    names = (
        ("sequences", "batch_first", "padding_value", "padding_side")
        if library == "torch"
        else ("xs", "length", "padding")
    )
    given = {**dict(zip(names, arguments, strict=False)), **keywords}
    value = given.get("padding_value", given.get("padding", 0))
    known = isinstance(value, int | float) and given.get("length") is None
    if not known or given.get("padding_side", "right") != "right":
        return None
    made: Tensor = many.uneven.padded(value)
    if library == "torch" and given.get("batch_first", False) is not True:
        made = core.op("Transpose", made, perm=[1, 0, *range(2, made.rank)])
    return made


def listed_array(
    core: Core,
    many: Many,
    x: Tensor,
    name: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Tensor:
    """Return a list of numbers or of arrays as an array of a library's own."""
    library = name.partition(".")[0]
    given = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
    wanted = x.dtype
    if library == "torch" and wanted == ir.DataType.DOUBLE and x.kind not in _KINDS.values():
        wanted = ir.DataType.FLOAT  # as torch.get_default_dtype() has it
    if isinstance(given, Host) and given.object in _PYTHON:
        given = DType(_PYTHON[given.object], library)
    if isinstance(given, DType):
        wanted = given.dtype
    elif given is not None:
        raise CheckError(
            "capture", f"'{name}' of a list whose length the data decide, with {given}"
        )
    kinds = {ir.DataType.INT64 if kind is int else kind for kind in many.also} - {x.dtype}
    if given is None and kinds:
        raise CheckError(
            "capture",
            "the data decide which types the numbers of a list have, and so which element type the "
            f"array has; say it, as in {name}(items, dtype=...), or give them one type",
        )
    made: Tensor = core.op("Cast", x, to=wanted)
    return replace(made, kind=_KINDS[library])


__all__ = ["listed_array", "row_of", "stacked"]
