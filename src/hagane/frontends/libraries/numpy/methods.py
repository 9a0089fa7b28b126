"""Attributes and methods of NumPy's arrays."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries import indexing
from hagane.frontends.libraries.listing import listed, number
from hagane.frontends.libraries.numpy.operands import (
    DOUBLE,
    cast,
    dtype_of,
    elements,
    fits,
    is_number,
    reshape,
    shape_of,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.shaping import permuted, read_in_order
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Tensor,
    Value,
    is_plain,
)
from hagane.ops.builder import op
from hagane.symbolic import Expr


@NUMPY.attribute("shape")
def shape(t: Core, x: Tensor) -> Value:
    """Return the sizes."""
    return shape_of(t, x)


@NUMPY.attribute("dtype")
def dtype(t: Core, x: Tensor) -> Value:
    """Return the element type."""
    return DType(x.dtype, "numpy")


@NUMPY.attribute("ndim")
def ndim(t: Core, x: Tensor) -> Value:
    """Return the number of axes."""
    return len(shape_of(t, x))


@NUMPY.attribute("size")
def size(t: Core, x: Tensor) -> Value:
    """Return the number of elements."""
    return elements(t, x)


@NUMPY.attribute("itemsize")
def itemsize(t: Core, x: Tensor) -> Value:
    """Return the bytes of an element."""
    return int(x.dtype.itemsize)


@NUMPY.attribute("nbytes")
def nbytes(t: Core, x: Tensor) -> Value:
    """Return the bytes of all elements."""
    return elements(t, x) * int(x.dtype.itemsize)


@NUMPY.attribute("T")
def transposed(t: Core, x: Tensor) -> Value:
    """Return the array with its axes reversed."""
    return permuted(t, x, None)


@NUMPY.attribute("mT")
def matrix_transposed(t: Core, x: Tensor) -> Value:
    """Return the array with its last two axes swapped."""
    return t.call_library("numpy.matrix_transpose", [x])


@NUMPY.attribute("real")
def real(t: Core, x: Tensor) -> Value:
    """Return real parts."""
    return t.call_library("numpy.real", [x])


@NUMPY.attribute("imag")
def imag(t: Core, x: Tensor) -> Value:
    """Return imaginary parts."""
    return t.call_library("numpy.imag", [x])


@NUMPY.attribute("flat")
def flat(t: Core, x: Tensor) -> Value:
    """Return all elements in one axis."""
    return reshape(t, x, [-1])


@NUMPY.attribute("device")
def device(t: Core, x: Tensor) -> Value:
    """Return the device, which is always the CPU."""
    return Device("cpu")


@NUMPY.attribute("base", "ctypes", "flags")
def memory(t: Core, x: Tensor) -> Value:
    """Return what is known of the memory: nothing."""
    return t.outside("the memory of an array")


@NUMPY.attribute("strides")
def strides(t: Core, x: Tensor) -> Value:
    """Return the distances of neighbours in memory, of which nothing is known."""
    return tuple(t.emit.fresh("stride") for _ in shape_of(t, x))


@NUMPY.method("astype")
def astype(
    t: Core, self: Value, dtype: Value, order: Value = "K", casting: Value = "unsafe", *_: Value,
    **__: Value,
) -> Tensor:  # fmt: skip
    """Return the array with another element type."""
    wanted = dtype_of(t, dtype, DOUBLE)
    rule: Any = casting
    if not np.can_cast(self.dtype.numpy(), wanted.numpy(), rule):
        t.fail("dtype-mismatch", f"TypeError: Cannot cast {t.show(self)} to {wanted.numpy()} "
               f"according to the rule '{casting}'", self)  # fmt: skip
    made = cast(t, self, wanted)
    same = partial(op, "Identity")
    return (
        made if made is not self else typed(t, "Cast", [self], wanted, self.shape, self.known, same)
    )


@NUMPY.function("astype")
def astype_function(
    t: Core, x: Value, dtype: Value, /, *, copy: Value = True, **_: Value
) -> Tensor:
    """Return the array with another element type."""
    return astype(t, to_array(t, x), dtype)


@NUMPY.method("view")
def view(t: Core, self: Value, dtype: Value = None, *_: Value) -> Tensor:
    """Return the bytes as another element type; the last axis changes with its size."""
    wanted = dtype_of(t, dtype, self.dtype)
    shape = list(shape_of(t, self))
    if wanted.itemsize != self.dtype.itemsize:
        if not shape:
            t.fail("rank", f"a number cannot change its size: {t.show(self)}", self)
        shape[-1] = shape[-1] * self.dtype.itemsize // wanted.itemsize
    same = partial(op, "Identity")
    rule = same if wanted == self.dtype else None
    if rule is None and wanted.itemsize == self.dtype.itemsize and wanted.numpy().kind != "c":
        rule = partial(op, "BitCast", to=int(wanted))
    return typed(t, "View", [self], wanted, tuple(shape), None, rule)


@NUMPY.method("reshape")
def reshape_method(t: Core, self: Value, *shape: Value, order: Value = "C", **_: Value) -> Tensor:
    """Return the array with another shape, of which one size may be -1."""
    wanted = shape[0] if len(shape) == 1 else shape
    return read_in_order(t, self, sizes(t, wanted), order)


@NUMPY.method("transpose")
def transpose_method(t: Core, self: Value, *axes: Value) -> Tensor:
    """Return the array with its axes in another order, reversed without one."""
    given = axes[0] if len(axes) == 1 and not is_number(axes[0]) else axes
    return permuted(t, self, given or None if given != () or not axes else given)


@NUMPY.method("copy", "__copy__", "__deepcopy__", "conj", "conjugate", "__array__")
def copy(t: Core, self: Value, *_: Value, **__: Value) -> Tensor:
    """Return a copy."""
    same = partial(op, "Identity")
    return typed(t, "Identity", [self], self.dtype, self.shape, self.known, same)


@NUMPY.method("round")
def round_method(t: Core, self: Value, decimals: Value = 0, out: Value = None) -> Tensor:
    """Return the array rounded."""
    made: Tensor = t.call_library("numpy.round", [self, decimals])
    return made


@NUMPY.method("clip")
def clip_method(
    t: Core, self: Value, min: Value = None, max: Value = None, out: Value = None, **_: Value
) -> Tensor:
    """Return the array cut to a range."""
    made: Tensor = t.call_library("numpy.clip", [self, min, max])
    return made


@NUMPY.method("compress")
def compress_method(t: Core, self: Value, condition: Value, axis: Value = None) -> Tensor:
    """Return the slices along an axis where the condition holds."""
    made: Tensor = t.call_library("numpy.compress", [condition, self, axis])
    return made


@NUMPY.method("ptp")
def ptp_method(t: Core, self: Value, *arguments: Value, **keywords: Value) -> Tensor:
    """Return the largest minus the smallest element."""
    made: Tensor = t.call_library("numpy.ptp", [self, *arguments], keywords)
    return made


@NUMPY.method("fill")
def fill(t: Core, self: Value, value: Value) -> Value:
    """Fill the array."""
    self.known = None
    return None


@NUMPY.method("is_integer")
def is_integer(t: Core, self: Value) -> Value:
    """Return whether a scalar is a whole number."""
    if self.shape != ():
        t.fail("attribute", "'numpy.ndarray' has no attribute 'is_integer'", self)
    same = t.tables.operator(t, "eq", self, t.call_library("numpy.floor", [self]))
    return t.as_truth(t.as_term(t.truth(same)))


@NUMPY.function("lib.stride_tricks.as_strided")
def as_strided(
    t: Core, x: Value, shape: Value = None, strides: Value = None, subok: Value = False,
    writeable: Value = True, *, check_bounds: Value = None,
) -> Value:  # fmt: skip
    """Return an array of a shape that reads the memory of another by given distances."""
    given = to_array(t, x)
    wanted = shape_of(t, given) if shape is None else tuple(sizes(t, shape))
    if isinstance(strides, tuple | list) and len(strides) != len(wanted):
        t.fail("value", f"expected a distance for each of {len(wanted)} axes, got {len(strides)}")
    return typed(t, "Strided", [given], given.dtype, wanted)


@NUMPY.method("byteswap")
def byteswap(t: Core, self: Value, inplace: Value = False) -> Value:
    """Return the array with the bytes of each element in the other order."""
    if inplace is True:
        self.known = None
        return self
    return typed(t, "Swapped", [self], self.dtype, self.shape)


@NUMPY.method("setflags", "put", "dump", "itemset")
def change(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Change content that no type shows."""
    self.known = None
    return None


@NUMPY.method("__len__")
def length(t: Core, self: Value) -> Value:
    """Return the size of the first axis."""
    sizes_ = shape_of(t, self)
    if not sizes_:
        t.fail("type", "len() of unsized object: an array without axes", self)
    return sizes_[0]


@NUMPY.method("__float__")
def float_method(t: Core, self: Value) -> Value:
    """Return the only element as a float of Python."""
    return t.tensor_number(self, whole=False)


@NUMPY.method("__int__")
def int_method(t: Core, self: Value) -> Value:
    """Return the only element as an int of Python."""
    return t.tensor_number(self, whole=True)


@NUMPY.method("item")
def item_method(t: Core, self: Value, *place: Value) -> Value:
    """Return the only element, or one of them, as a number of Python."""
    if len(place) == 1 and isinstance(place[0], tuple):
        place = place[0]
    elif len(place) == 1:
        self = reshape(t, self, [-1])
    if not place:
        return number(t, self)
    if len(place) != self.rank:
        t.fail(
            "call", f"expected {self.rank} places or one, got {len(place)}: {t.show(self)}", self
        )
    return number(t, item(t, self, place))


@NUMPY.method("tolist")
def tolist(t: Core, self: Value) -> Value:
    """Return the content as nested lists."""
    return listed(t, self, shape_of(t, self))


@NUMPY.method("tobytes", "tostring")
def tobytes(t: Core, self: Value, order: Value = "C") -> Value:
    """Return the bytes, of which nothing is known."""
    return t.lost("the bytes of an array")


def item(t: Core, x: Tensor, index: Value) -> Tensor:
    """Return ``x[index]``; known content is kept."""
    if isinstance(index, tuple):
        index = tuple(_plain(t, part) for part in index)
    else:
        index = _plain(t, index)
    return indexing.item(t, x, index)


def _plain(t: Core, part: Value) -> Value:
    """Return an index with arrays of one known integer as that integer."""
    if isinstance(part, Tensor) and part.shape == () and part.dtype.is_integer():
        return t.tensor_number(part, whole=True)
    return part


def set_item(t: Core, x: Tensor, index: Value, value: Value) -> None:
    """Check ``x[index] = value``; known content stays known where nothing is undecided."""
    value = t.unwrap(value)
    if isinstance(value, list | tuple):
        value = to_array(t, value, x.dtype if x.dtype.is_integer() else None)
    elif not fits(value, x.dtype):
        to_array(t, value, x.dtype)  # which fails
    if isinstance(value, Tensor) and not np.can_cast(
        value.dtype.numpy(), x.dtype.numpy(), "unsafe"
    ):
        t.fail("dtype-mismatch", f"{t.show(value)} cannot be stored in {t.show(x)}", x, value)
    before = x.known
    indexing.set_item(t, x, index, value)
    held = value.known if isinstance(value, Tensor) else value
    x.known = None
    if before is None or held is None or t.knowledge.path.decisions or t.loops:
        return
    if is_plain(index) and (is_plain(held) or isinstance(held, np.ndarray | Expr)):
        kept = before.astype(object) if isinstance(held, Expr) else before.copy()
        kept[index] = held
        x.known = kept


NUMPY.item = item
NUMPY.set_item = set_item
