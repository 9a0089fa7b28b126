"""Attributes and methods of Chainer's variables."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.operands import (
    shape_of,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.table import CHAINER, VARIABLE
from hagane.frontends.libraries.numpy.methods import item as numpy_item
from hagane.frontends.libraries.numpy.operands import KIND, elements
from hagane.frontends.libraries.numpy.operands import reshape as reshaped
from hagane.frontends.libraries.numpy.shaping import permuted
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    DType,
    Library,
    Tensor,
    Value,
)


@CHAINER.attribute("shape")
def shape(t: Core, x: Tensor) -> Value:
    """Return the sizes; None of a parameter that is not initialised."""
    return None if x.shape is None and x.parameter else shape_of(t, x)


@CHAINER.attribute("dtype")
def dtype(t: Core, x: Tensor) -> Value:
    """Return the element type."""
    return DType(x.dtype, "numpy")


@CHAINER.attribute("ndim")
def ndim(t: Core, x: Tensor) -> Value:
    """Return the number of axes."""
    return len(shape_of(t, x))


@CHAINER.attribute("size")
def size(t: Core, x: Tensor) -> Value:
    """Return the number of elements."""
    return elements(t, x)


@CHAINER.attribute("T")
def transposed(t: Core, x: Tensor) -> Value:
    """Return the variable with its axes reversed."""
    return permuted(t, x, None)


@CHAINER.attribute("array", "data", "grad", "grad_var")
def array(t: Core, x: Tensor) -> Value:
    """Return the array; None of a parameter that is not initialised."""
    if x.shape is None and x.parameter:
        return None
    return t.emit.stopped(x).seen_as(KIND)


@CHAINER.attribute("xp")
def xp(t: Core, x: Tensor) -> Value:
    """Return the module of its array."""
    return Library("numpy")


@CHAINER.attribute("is_initialized")
def is_initialized(t: Core, x: Tensor) -> Value:
    """Return whether a parameter has a shape."""
    return x.shape is not None


@CHAINER.attribute("requires_grad")
def requires_grad(t: Core, x: Tensor) -> Value:
    """Return whether it has gradients."""
    return True


@CHAINER.attribute("name", "label", "creator", "creator_node", "node", "rank", "update_rule")
def nothing_known(t: Core, x: Tensor) -> Value:
    """Return None: it has no meaning for types."""
    return None


@CHAINER.attribute("device")
def device(t: Core, x: Tensor) -> Value:
    """Return the device."""
    from hagane.frontends.python.values.values import Device

    return Device("cpu")


@CHAINER.method("reshape")
def reshape(t: Core, self: Value, *shape: Value) -> Tensor:
    """Return the variable with another shape, of which one size may be -1."""
    return reshaped(t, self, sizes(t, shape[0] if len(shape) == 1 else shape))


@CHAINER.method("transpose")
def transpose(t: Core, self: Value, *axes: Value) -> Tensor:
    """Return the variable with its axes in another order, reversed without one."""
    given = (
        axes[0]
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list))
        else axes
    )
    return permuted(t, self, given or None)


def _as_function(name: str) -> None:
    def method(t: Core, self: Value, *arguments: Value, **keywords: Value) -> Value:
        return t.call_library(f"chainer.functions.{name}", [self, *arguments], keywords)

    CHAINER.method(name)(method)


for _name in ("mean", "sum", "squeeze"):
    _as_function(_name)


@CHAINER.method("__len__")
def length(t: Core, self: Value) -> Value:
    """Return the size of the first axis."""
    sizes_ = shape_of(t, self)
    if not sizes_:
        t.fail("type", "len() of unsized object: a variable without axes", self)
    return sizes_[0]


@CHAINER.method("item", "__float__", "__int__")
def item_method(t: Core, self: Value) -> Value:
    """Return the only element as a number of Python."""
    return t.tensor_number(self, whole=self.dtype.is_integer())


@CHAINER.method(
    "backward", "cleargrad", "zerograd", "unchain", "unchain_backward", "addgrad", "copydata",
    "set_creator", "set_creator_node", "to_cpu", "to_gpu", "to_intel64", "to_chx", "from_chx",
    "to_device", "debug_print", "retain_data", "update",
)  # fmt: skip
def nothing(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return None: it changes no type."""
    return None


@CHAINER.method("initialize")
def initialize(t: Core, self: Value, shape: Value) -> Value:
    """Give a parameter its shape."""
    self.shape = tuple(sizes(t, shape))
    return None


@CHAINER.function("Variable")
def make_variable(t: Core, data: Value = None, **_: Value) -> Value:
    """Return a variable of an array."""
    if data is None:
        return t.lost("a Variable without an array")
    if isinstance(data, Tensor) and data.kind == VARIABLE:
        t.fail("type", f"expected an array, got {t.show(data)}", data, remedy="pass x.array")
    return variable(t, data, "data")


@CHAINER.function("as_variable")
def as_variable(t: Core, obj: Value) -> Tensor:
    """Return an array or a variable as a variable."""
    return variable(t, obj, "obj")


@CHAINER.function("as_array")
def as_array(t: Core, obj: Value) -> Value:
    """Return the array of a variable."""
    return array(t, obj) if isinstance(obj, Tensor) else obj


def item(t: Core, x: Tensor, index: Value) -> Tensor:
    """Return ``x[index]``."""
    return numpy_item(t, variable(t, x), index)


def set_item(t: Core, x: Tensor, index: Value, value: Value) -> None:
    """Variables refuse items to be set."""
    del index, value
    t.fail(
        "type",
        f"TypeError: 'Variable' does not support item assignment: {t.show(x)}",
        x,
        remedy="set the items of x.array",
    )


CHAINER.item = item
CHAINER.set_item = set_item
