"""Views of tensors that are written: the whole gets the content that the view has; and copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from hagane.frontends.libraries.memory.writing import unrecorded
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import base_of
from hagane.frontends.python.values.values import Tensor, Value

# Puts a view's new content back into the whole: called with the interpreter, the whole, the view.
Put = Callable[[Core, Tensor, Tensor], Value]


def same(core: Core, whole: Tensor, view: Tensor) -> Value:
    """Put back a view without gradients of all of a tensor."""
    return unrecorded(core, whole, core.op("Identity", view))


def _reshaped(core: Core, whole: Tensor, view: Tensor) -> Value:
    assert whole.shape is not None
    return core.op("Reshape", view, core.emit.constant(list(whole.shape), ir.DataType.INT64))


def _read_back(core: Core, whole: Tensor, view: Tensor) -> Value:
    return core.op("BitCast", view, to=whole.dtype)


def _placed(made: Tensor, whole: Tensor) -> Put:
    """Return the way back of a view of single elements: they are found by the places of all."""

    def put(core: Core, now: Tensor, view: Tensor) -> Value:
        assert now.shape is not None
        last = core.emit.constant([-1], ir.DataType.INT64)
        sizes = core.emit.constant(list(now.shape), ir.DataType.INT64)
        first, step = (core.emit.constant(number, ir.DataType.INT64) for number in (0, 1))
        places = core.op("Range", first, core.op("Size", now), step)
        places = core.op("Reshape", places, sizes)
        taken = core.emit.again(made.value, whole.value, places.value)
        numbers = replace(made, dtype=ir.DataType.INT64, value=taken, known=None)
        own = core.op("Reshape", numbers, last)
        flat, new = core.op("Reshape", now, last), core.op("Reshape", view, last)
        return core.op("Reshape", core.op("ScatterElements", flat, own, new, axis=0), sizes)

    return put


# Functions whose results may have the memory of their operand; those of all others have their own,
# from whatever operators.
_VIEWS = frozenset(
    ("view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "contiguous",
     "ascontiguousarray", "asarray", "asanyarray", "asarray_chkfinite", "require", "asfortranarray",
     "t", "T", "mT", "H", "mH", "adjoint", "transpose", "matrix_transpose", "permute_dims",
     "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "rollaxis", "squeeze", "unsqueeze",
     "expand_dims", "expand", "expand_as", "broadcast_to", "broadcast_tensors", "broadcast_arrays",
     "broadcast", "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit",
     "dsplit", "array_split", "unbind", "unstack", "separate", "split_axis", "select", "narrow",
     "diagonal", "diag", "unfold", "unflatten", "detach", "data", "array", "real", "imag",
     "view_as_real", "view_as_complex", "atleast_1d", "atleast_2d", "atleast_3d", "positive",
     "conj", "conj_physical", "resolve_conj", "resolve_neg", "as_strided", "get_item", "flat", "to",
     "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "cpu", "cuda",
     "numpy", "from_numpy", "as_tensor", "astype", "requires_grad_", "rearrange", "identity",
     "alias", "sliding_window_view", "Parameter", "Buffer")
)  # fmt: skip
_LIBRARY_VIEWS = frozenset(
    ("numpy.flip", "numpy.flipud", "numpy.fliplr", "numpy.rot90", "torch.nn.Flatten.forward",
     "torch.nn.Unflatten.forward", "torch.nn.Identity.forward", "torch.meshgrid", "einops.repeat",
     "einops.layers.torch.Rearrange.forward")
)  # fmt: skip


def is_view(name: str) -> bool:
    """Whether the result of a library's function, method or attribute may be a view."""
    return name.rpartition(".")[2] in _VIEWS or name in _LIBRARY_VIEWS


# Views that always share the memory of the whole, whatever the order of that is.
_SAME = ("detach", "data")
COPYING_WHERE_NEEDED = ("reshape", "reshape_as", "flatten", "ravel")  # what does not lie in order
_RESHAPED = ("view", "view_as", "squeeze", "unsqueeze", "expand_dims")
_PLACED = frozenset(
    ("diagonal", "narrow", "select", "chunk", "split", "split_with_sizes", "tensor_split", "hsplit",
     "vsplit", "dsplit", "array_split", "unbind", "unflatten")
)  # fmt: skip
_TURNED = ("t", "T", "mT", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis")


def put_back(
    name: str, whole: Value, made: Value, base: Callable[[], ir.Value], copies: bool | None
) -> Put | None:
    """Return how the content of a view gets back into its whole; None where that is not known.

    Args:
        name: The function, method or attribute that made the view.
        whole: Its operand.
        made: Its result.
        base: Returns the value in the graph whose memory the operand has.
        copies: Whether a function that copies where it has to does; None where that is not known.
    """
    if not isinstance(whole, Tensor) or not isinstance(made, Tensor) or made.value is whole.value:
        return None
    if whole.shape is None or base_of(made.value) is not base():
        return None
    last = name.rpartition(".")[2]
    if last in _SAME:
        return same
    node = made.value.producer()
    if node is not None and node.op_type == "BitCast" and node.inputs[0] is whole.value:
        return _read_back
    if made.dtype != whole.dtype:
        return None
    if last in _RESHAPED or (
        last in COPYING_WHERE_NEEDED and copies is False and _has_memory(last, whole)
    ):
        return _reshaped
    if last in _PLACED:
        return _placed(made, whole)
    if last in _TURNED and node is not None and node.op_type == "Transpose":
        if node.inputs[0] is not whole.value:
            return None
        given = node.attributes.get("perm")
        order = list(reversed(range(len(whole.shape)))) if given is None else given.as_ints()
        inverse = [list(order).index(axis) for axis in range(len(order))]
        return lambda core, whole, view: core.op("Transpose", view, perm=inverse)
    return None


def _has_memory(name: str, whole: Tensor) -> bool:
    """Whether a tensor has memory that others see, and a function may give a view of it."""
    return whole.kind != "numpy.ndarray" or (name != "flatten" and bool(whole.shape))


# Functions whose results share no memory with their arguments, for any operators.
_COPYING = frozenset(
    ("numpy.array", "numpy.copy", "numpy.astype", "numpy.ndarray.copy", "numpy.ndarray.flatten",
     "numpy.ndarray.astype", "torch.clone", "torch.Tensor.clone", "torch.tensor",
     "numpy.zeros_like", "numpy.ones_like", "torch.zeros_like", "torch.ones_like",
     "torch.index_select", "torch.Tensor.index_select", "numpy.take", "numpy.ndarray.take",
     "torch.take", "torch.Tensor.take", "torch.diag", "torch.Tensor.diag")
)  # fmt: skip
# Of these, those that may be told to return the array itself.
_SPARING = frozenset(("numpy.array", "numpy.astype", "numpy.ndarray.astype"))
_ASTYPE = 5  # the place of copy among the arguments of ndarray.astype, the array counted


def _copy(name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """Return the argument ``copy`` of a call; None where it is not given."""
    if name == "numpy.ndarray.astype" and len(arguments) > _ASTYPE:
        return arguments[_ASTYPE]
    if name == "torch.Tensor.to" and "copy" not in keywords:
        flags = [value for value in arguments if isinstance(value, bool)]
        return len(flags) > 1 and flags[1]  # the first one is non_blocking
    return keywords.get("copy")


def is_copy(
    name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], made: Value
) -> bool:
    """Whether the result of a function or method shares no memory with its arguments."""
    if name not in _SPARING:
        return name in _COPYING or _copy(name, arguments, keywords) is True
    x, found = arguments[0] if arguments else None, _copy(name, arguments, keywords)
    if found is not False and not (found is None and name == "numpy.array" and "copy" in keywords):
        return True
    return isinstance(x, Tensor) and isinstance(made, Tensor) and made.dtype != x.dtype


def spared(
    name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], made: Value
) -> Value:
    """Return the array itself for the result of a call that is told to copy only where it has to.

    Raises:
        CheckError: The call may not copy, and has to.
    """
    x = arguments[0] if arguments else None
    if name not in _SPARING or not isinstance(x, Tensor) or not isinstance(made, Tensor):
        return made
    if name == "numpy.array" and keywords.get("copy") is False and made.dtype != x.dtype:
        raise CheckError(
            "value",
            "ValueError: Unable to avoid copy while creating an array as requested: another "
            "element type; leave out copy=False",
        )
    if is_copy(name, arguments, keywords, made):
        return made
    ordered = keywords.get("order", "K") != "K" or (len(arguments) > 2 and arguments[2] != "K")
    return made if ordered or made.shape != x.shape else x


__all__ = ["COPYING_WHERE_NEEDED", "Put", "is_copy", "is_view", "put_back", "spared"]
