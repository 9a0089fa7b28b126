"""Attributes and plain methods of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.listing import listed, number
from hagane.frontends.libraries.names.typed_only import reason_of
from hagane.frontends.libraries.torch.memory import FORMATS, strides_in
from hagane.frontends.libraries.torch.operands import (
    axis,
    category,
    dtype_of,
    elements,
    need_tensor,
    promoted,
    result_dtype,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.recording import (
    apart,
    asks,
    freeze,
    need_gradients,
    refuse_numpy,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.strides import dense, is_one, strides_of
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Host,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.tensors import ordering
from hagane.symbolic import Dim, definitely_equal, maximum


@TORCH.attribute("shape")
def shape(t: Core, x: Tensor) -> Value:
    """Return the sizes."""
    return Size(shape_of(t, x))


@TORCH.attribute("dtype")
def dtype(t: Core, x: Tensor) -> Value:
    """Return the element type."""
    return DType(x.dtype)


@TORCH.attribute("device")
def device(t: Core, x: Tensor) -> Value:
    """Return the device."""
    return Device(x.device or "cpu")


@TORCH.attribute("ndim")
def ndim(t: Core, x: Tensor) -> Value:
    """Return the number of axes."""
    return len(shape_of(t, x))


@TORCH.attribute("data")
def data(t: Core, x: Tensor) -> Value:
    """Return the tensor itself, apart from gradients."""
    return apart(t, built(t, (x.dtype, shape_of(t, x)), lambda x: op("Identity", x), x))


@TORCH.attribute("grad")
def grad(t: Core, x: Tensor) -> Value:
    """Return a tensor of the same type; of one that is not trained and has none, None."""
    real = t.emit.object_of(x)
    if real is None and isinstance(x.value, ir.Value):
        real = x.value.meta.get("hagane.held")  # state that the call changes
    if real is not None and not real.requires_grad and real.grad is None:
        for name, answer in (("requires_grad", False), ("grad", None)):
            t.observer.asked(real, partial(getattr, real, name), answer)
        return None
    if t.emit.builds:
        t.fail(
            "capture", f"'torch.Tensor.grad' cannot be captured: {reason_of('torch.Tensor.grad')}"
        )
    return t.emit.typed("Identity", [x], x.dtype, x.shape)


@TORCH.attribute("is_leaf")
def is_leaf(t: Core, x: Tensor) -> Value:
    """Return whether no operator made it: of tensors of the program, parameters."""
    return x.parameter


@TORCH.attribute("requires_grad")
def requires_grad(t: Core, x: Tensor) -> Value:
    """Return whether it is trained, or computed from what is while gradients are recorded."""
    real = t.emit.object_of(x)
    if real is not None:
        t.observer.asked(real, partial(getattr, real, "requires_grad"), real.requires_grad)
        return bool(real.requires_grad)
    if not t.emit.builds:
        known = asks(t, x)
        return x.parameter if known is None else known
    if t.emit.training is not None:
        trained, closed = t.emit.gradients_from(x)
        for one in trained:
            t.observer.asked(one, partial(getattr, one, "requires_grad"), True)
        if trained or closed:
            return bool(trained)
    if t.emit.training is not None or (not t.emit.still and t.emit.may_be_trained(x)):
        t.fail("capture", "whether a result 'requires_grad' is known while no gradients are "
               "recorded", x, remedy="capture under torch.no_grad()")  # fmt: skip
    return False


@TORCH.attribute("is_cuda")
def is_cuda(t: Core, x: Tensor) -> Value:
    """Return whether it lies on a GPU."""
    return x.device.startswith("cuda")


@TORCH.attribute(
    "is_quantized", "is_nested", "is_mps", "is_meta", "is_xpu", "is_xla", "is_ipu",
    "is_maia", "is_mtia", "is_mkldnn", "is_vulkan", "is_sparse_csr",
)  # fmt: skip
def no(t: Core, x: Tensor) -> Value:
    """Return False."""
    return False


@TORCH.attribute("layout")
def layout(t: Core, x: Tensor) -> Value:
    """Return the layout: tensors of the program lie densely."""
    return TORCH.constants["torch.strided"]


@TORCH.attribute("grad_fn")
def nothing(t: Core, x: Tensor) -> Value:
    """Return None."""
    return None


@TORCH.attribute("is_cpu")
def is_cpu(t: Core, x: Tensor) -> Value:
    """Return whether it lies on the CPU."""
    return x.device == "cpu"


@TORCH.attribute("nbytes")
def nbytes(t: Core, x: Tensor) -> Value:
    """Return the bytes of all elements."""
    shape_of(t, x)
    return itemsize(t, x) * elements(x)


@TORCH.attribute("itemsize")
def itemsize(t: Core, x: Tensor) -> Value:
    """Return the bytes of an element."""
    return max(int(x.dtype.bitwidth) // 8, 1)


@TORCH.method("size")
def size(t: Core, self: Value, dim: Value = None) -> Value:
    """Return the sizes, or that of one axis."""
    sizes = shape_of(t, self)
    return Size(sizes) if dim is None else sizes[_of_axes(t, dim, sizes, self)]


def _of_axes(t: Core, dim: Value, sizes: Sequence[Dim], x: Tensor) -> int:
    """Return an axis of a tensor that has axes."""
    if not sizes:
        t.fail("axis", f"dim={t.show(dim)} of a tensor without axes: {t.show(x)}", x)
    return axis(t, dim, len(sizes), x)


@TORCH.method("dim", "ndimension")
def dim(t: Core, self: Value) -> Value:
    """Return the number of axes."""
    return len(shape_of(t, self))


@TORCH.method("__len__")
def length(t: Core, self: Value) -> Value:
    """Return the size of the first axis."""
    sizes = shape_of(t, self)
    if not sizes:
        t.fail("type", "len() of a tensor without axes", self)
    return sizes[0]


@TORCH.method("__iter__")
def iterate(t: Core, self: Value) -> Value:
    """Return an iterator over the parts along the first axis."""
    return t.call(Host(iter), [self], {})


@TORCH.method("__float__")
def as_float_number(t: Core, self: Value) -> Value:
    """Return the only element as a float."""
    return t.tensor_number(self, whole=False)


@TORCH.method("__int__")
def as_whole_number(t: Core, self: Value) -> Value:
    """Return the only element as an int."""
    return t.tensor_number(self, whole=True)


@TORCH.method("item")
def item(t: Core, self: Value) -> Value:
    """Return the only element as a number."""
    return number(t, self)


@TORCH.method("tolist")
def tolist(t: Core, self: Value) -> Value:
    """Return the content as nested lists."""
    return listed(t, self, shape_of(t, self))


@TORCH.method("numpy")
def numpy(t: Core, self: Value, *, force: Value = False) -> Tensor:
    """Return a NumPy array of the content."""
    if self.device.startswith("cuda"):
        t.fail(
            "device-mismatch",
            "a tensor on a GPU has no numpy()",
            self,
            remedy="move it with .cpu()",
        )
    if force is not True:
        refuse_numpy(t, self, "numpy()")
    x: Tensor = t.op("Identity", self, device="cpu")
    return x.seen_as("numpy.ndarray")


@TORCH.method("requires_grad_")
def requires_grad_(t: Core, self: Value, requires_grad: Value = True) -> Value:
    """Return the tensor itself, by which the program may differentiate."""
    if requires_grad is not True and t.emit.builds and self.parameter:
        t.fail("capture", "a parameter is frozen in the middle of the program; do it outside, or "
               "use its .detach()", self)  # fmt: skip
    if requires_grad is not False:
        t.emit.note_trained(self)
    if requires_grad is not True:
        freeze(t)
    return need_gradients(t, self, requires_grad)


def _same(name: str) -> None:
    def method(t: Core, self: Value, *_: Value, **__: Value) -> Tensor:
        return self

    TORCH.method(name)(method)


for _name in (
    "retain_grad", "pin_memory", "share_memory_", "coalesce",
    "detach_", "zero_",
    "fill_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_",
    "set_", "cauchy_", "log_normal_", "geometric_",
    ):  # fmt: skip
    _same(_name)


@TORCH.method("copy_", "set_")
def copy_(t: Core, self: Value, other: Value, *_: Value, **__: Value) -> Tensor:
    """Copy a tensor into this one; it has to broadcast to it."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
    from hagane.frontends.libraries.torch.functions.numbers.storing import same_place

    x = need_tensor(t, other, "other")
    made = t.emit.new(self.dtype, broadcast_shape(t, self, x))
    same_place(t, self, made)
    return self


def _nothing(name: str) -> None:
    def method(t: Core, self: Value, *_: Value, **__: Value) -> Value:
        return None

    TORCH.method(name)(method)


for _name in ("record_stream",):
    _nothing(_name)


def _answer(name: str, value: Value) -> None:
    def method(t: Core, self: Value, *_: Value, **__: Value) -> Value:
        return value

    TORCH.method(name)(method)


@TORCH.method("is_contiguous")
def is_contiguous(t: Core, self: Value, memory_format: Value = None) -> Value:
    """Return whether the axes lie in memory as they are named, or as the format has them."""
    if memory_format in (None, "contiguous_format"):
        return self.strides is None
    if memory_format not in FORMATS or len(shape_of(t, self)) != len(FORMATS[memory_format]):
        return False
    strides = strides_in(t, replace(self, strides=None), memory_format)
    wanted = dense(shape_of(t, self)) if strides is None else strides
    pairs = zip(shape_of(t, self), strides_of(self), wanted, strict=True)
    return all(is_one(size) or definitely_equal(a, b) for size, a, b in pairs)


_answer("get_device", -1)
_answer("storage_offset", 0)


@TORCH.method("element_size")
def element_size(t: Core, self: Value) -> Value:
    """Return the bytes of an element."""
    return itemsize(t, self)


@TORCH.method("__getitem__")
def getitem(t: Core, self: Value, index: Value) -> Value:
    """Return ``self[index]``."""
    return t.tables.tensor_item(t, self, index)


@TORCH.method("is_signed")
def is_signed(t: Core, self: Value) -> Value:
    """Return whether the elements have a sign."""
    return not self.dtype.name.startswith(("UINT", "BOOL"))


@TORCH.method("stride")
def stride(t: Core, self: Value, dim: Value = None) -> Value:
    """Return how far neighbours lie apart along each axis, or one axis."""
    sizes = shape_of(t, self)
    steps: list[Value] = [1] if self.strides is None else list(self.strides)
    for size_ in reversed(sizes[1:]) if self.strides is None else ():
        steps.insert(0, steps[0] * maximum(size_, 1))
    return tuple(steps) if dim is None else steps[_of_axes(t, dim, sizes, self)]


@TORCH.function("histc", methods=("histc",))
def histc(t: Core, input: Value, bins: Value = 100, min: Value = 0, max: Value = 0) -> Tensor:
    """Return how many elements fall into each bin."""
    (bins,) = sizes(t, [bins])
    made = (input.dtype, (bins,))
    if not isinstance(bins, int):
        return t.emit.typed("Histogram", [input], *made)
    if not isinstance(min, int | float) or not isinstance(max, int | float):
        edges = [to_tensor(t, edge, input.dtype) for edge in (min, max)]
        return built(t, made, lambda x, *edges: ordering.histogram(x, bins, edges), input, *edges)
    if min > max:
        t.fail("value", f"histc: max must not be smaller than min, got {max} and {min}")
    bounds = None if min == max else (float(min), float(max))
    return built(t, made, ordering.histogram, input, bins, bounds)


@TORCH.function("result_type")
def result_type(t: Core, tensor1: Value, tensor2: Value) -> Value:
    """Return the element type that an operation of two operands has."""
    return DType(result_dtype((tensor1, tensor2)))


@TORCH.function("promote_types")
def promote_types(t: Core, type1: Value, type2: Value) -> Value:
    """Return the smallest element type that both convert to."""
    return DType(promoted(dtype_of(type1), dtype_of(type2)))


@TORCH.function("can_cast")
def can_cast(t: Core, from_: Value, to: Value) -> Value:
    """Return whether one element type converts to another."""
    return category(dtype_of(from_)) <= category(dtype_of(to))
