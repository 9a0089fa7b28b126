"""Views of tensors that are written: the whole gets the content that the view has."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import base_of
from hagane.frontends.python.values.values import Tensor, Value

# Puts a view's new content back into the whole: called with the interpreter, the whole, the view.
Put = Callable[[Core, Tensor, Tensor], Value]


def _same(core: Core, whole: Tensor, view: Tensor) -> Value:
    return core.op("Identity", view)


def _reshaped(core: Core, whole: Tensor, view: Tensor) -> Value:
    assert whole.shape is not None
    return core.op("Reshape", view, core.emit.constant(list(whole.shape), ir.DataType.INT64))


# Views that always share the memory of the whole, whatever the order of that is.
_SAME = ("detach", "data")
_RESHAPED = ("view", "view_as", "squeeze", "unsqueeze", "expand_dims")
_TURNED = ("t", "T", "mT", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis")


def put_back(name: str, whole: Value, made: Value) -> Put | None:
    """Return how the content of a view gets back into its whole; None where that is not known.

    Args:
        name: The function, method or attribute that made the view.
        whole: Its operand.
        made: Its result.
    """
    if not isinstance(whole, Tensor) or not isinstance(made, Tensor) or made.value is whole.value:
        return None
    if whole.shape is None or base_of(made.value) is not base_of(whole.value):
        return None
    last = name.rpartition(".")[2]
    if last in _SAME:
        return _same
    if last in _RESHAPED:
        return _reshaped
    node = made.value.producer()
    if last in _TURNED and node is not None and node.op_type == "Transpose":
        if node.inputs[0] is not whole.value:
            return None
        given = node.attributes.get("perm")
        order = list(reversed(range(len(whole.shape)))) if given is None else given.as_ints()
        inverse = [list(order).index(axis) for axis in range(len(order))]
        return lambda core, whole, view: core.op("Transpose", view, perm=inverse)
    return None


__all__ = ["Put", "put_back"]
