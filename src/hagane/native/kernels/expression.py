"""Elementwise expressions over tensors, and the C text of their operations.

A template names its arguments ``{0}``, ``{1}``, … A function whose name starts with ``v_`` works
on vectors of float32; in scalar code it becomes ``s_`` (float32) or ``d_`` (float64). An expression
of 16-bit floats has, in a register, the float32 that the 16 bits stand for; so has, in vector code,
one of bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Buffer, Kind, Tensor

FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
# Floats that are kept in 16 bits and computed with in 32, and the ending of their C functions.
HALVES = {np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
# Floats of 8 bits and fewer, one in a byte, and the ending of their C functions.
TINY_FLOATS = {
    np.dtype(ml_dtypes.float8_e4m3fn): "e4m3fn",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "e4m3fnuz",
    np.dtype(ml_dtypes.float8_e5m2): "e5m2",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "e5m2fnuz",
    np.dtype(ml_dtypes.float8_e8m0fnu): "e8m0",
    np.dtype(ml_dtypes.float4_e2m1fn): "e2m1",
}
# Integers of 4 and 2 bits, one in a byte, whose upper bits mean nothing.
TINY_INTEGERS = {
    np.dtype(ml_dtypes.int4): "i4",
    np.dtype(ml_dtypes.uint4): "u4",
    np.dtype(ml_dtypes.int2): "i2",
    np.dtype(ml_dtypes.uint2): "u2",
}
# Elements that are another type in a register than in memory.
NARROW = {**HALVES, **TINY_FLOATS, **TINY_INTEGERS}
# Elements that vector code keeps as float32, and the ending of the functions that load and store.
SMALL_TYPES = {
    **HALVES,
    np.dtype(np.int8): "i8",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int16): "i16",
}
# Elements that vector code loads as float32 where they are only made that, and their functions' ending.
WIDE_TYPES = {np.dtype(np.int32): "i32", np.dtype(np.int64): "i64"}
# Parts of the names of functions that take long.
_LONG = ("exp", "log", "erf", "tanh", "pow", "sigmoid", "softplus", "mish", "swish", "gelu")
# The element types of vector code.
_VECTORS = frozenset({FLOAT32, BOOL, *SMALL_TYPES})


@dataclass(frozen=True, slots=True)
class Leaf:
    """An element of a tensor, which broadcasts to the result's shape."""

    tensor: Tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.tensor.dtype


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    value: float | int | bool
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on the elements of its arguments.

    Attributes:
        template: Its C text.
        arguments: The operands that the text's ``{i}`` stand for.
        dtype: The element type of the result.
        vector: Whether the text also serves vectors of float32.
        mask: Whether the result, in vector code, is a mask.
    """

    template: str
    arguments: tuple[Expression, ...]
    dtype: np.dtype[Any]
    vector: bool = True

    @property
    def mask(self) -> bool:
        """Whether vector code computes a mask."""
        return self.dtype == BOOL


Expression: TypeAlias = "Leaf | Constant | Apply"


def cost_of(expression: Expression) -> float:
    """Return roughly how many nanoseconds one element takes, divided by 16."""
    if not isinstance(expression, Apply):
        return 0.3
    own = 1.0 + 6.0 * sum(expression.template.count(name) for name in _LONG)
    return own + sum(cost_of(argument) for argument in expression.arguments)


def vectorizes(expression: Expression) -> bool:
    """Whether an expression can be computed on vectors of float32."""
    if isinstance(expression, Apply):
        return (
            expression.vector
            and expression.dtype in _VECTORS
            and (_widens(expression) or all(map(vectorizes, expression.arguments)))
        )
    return expression.dtype in _VECTORS


def _widens(expression: Apply) -> bool:
    """Whether an integer as it is loaded becomes a float32."""
    of = expression.arguments[0]
    made = (expression.template, expression.dtype) == ("{0}", FLOAT32)
    return made and isinstance(of, Leaf) and of.dtype in WIDE_TYPES


def apart(expression: Expression) -> tuple[Expression, Mapping[Leaf, Expression]]:
    """Return an expression whose parts that vectors can't compute are leaves, and these parts.

    There are none where all can be computed on vectors, or nothing that takes long is left.
    """
    parts: dict[Leaf, Expression] = {}

    def without(each: Expression) -> Expression:
        if vectorizes(each):
            return each
        if not isinstance(each, Apply) or not each.vector or each.dtype not in _VECTORS:
            name = f"part {len(parts)}"
            leaf = Leaf(Tensor(Buffer(name, 0, Kind.ARENA), each.dtype, (), ()))
            parts[leaf] = each
            return leaf
        return replace(each, arguments=tuple(map(without, each.arguments)))

    rest = without(expression)
    if all(leaf.dtype == FLOAT32 for leaf in parts) and _takes_long(rest):
        return rest, parts
    return expression, {}


def _takes_long(expression: Expression) -> bool:
    if not isinstance(expression, Apply):
        return False
    own = any(name in expression.template for name in _LONG)
    return own or any(map(_takes_long, expression.arguments))


def stepwise(expression: Expression, *, summed: bool = False) -> Expression:
    """Return an expression whose products are rounded before they become summands.

    A compiler makes one step of a product and a sum, which is more exact, but not what operators
    one after the other compute: what lies between two bytes is then rounded to the other one.

    Args:
        expression: Any.
        summed: Whether it is part of a summand.
    """
    if not isinstance(expression, Apply):
        return expression
    text = expression.template
    sums = summed or " + " in text or " - " in text
    arguments = tuple(stepwise(argument, summed=sums) for argument in expression.arguments)
    if summed and " * " in text and expression.dtype == FLOAT32:
        text = f"v_alone({text})"
    return replace(expression, template=text, arguments=arguments)


def divides_integers(expression: Expression) -> bool:
    """Whether an integer is divided by a number that may be zero, which is a failure of the kernel."""
    if not isinstance(expression, Apply):
        return False
    if expression.template.startswith(("hg_quotient", "hg_remainder", "hg_modulus")):
        divisor = expression.arguments[1]
        if not isinstance(divisor, Constant) or divisor.value == 0:
            return True
    return any(map(divides_integers, expression.arguments))


def leaves(expression: Expression) -> Iterable[Tensor]:
    """Yield the tensors that an expression reads."""
    if isinstance(expression, Leaf):
        yield expression.tensor
    elif isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from leaves(argument)


def number_type(dtype: np.dtype[Any]) -> str:
    """Return the C type that an element has in a register, in scalar code."""
    if dtype in HALVES or dtype in TINY_FLOATS:
        return "float"
    return "int32_t" if dtype in TINY_INTEGERS else c_type(dtype)


def loaded(dtype: np.dtype[Any], element: str) -> str:
    """Return C text for an element as a number."""
    return f"s_load_{NARROW[dtype]}({element})" if dtype in NARROW else element


def stored(dtype: np.dtype[Any], number: str) -> str:
    """Return C text for a number as an element."""
    return f"s_store_{NARROW[dtype]}({number})" if dtype in NARROW else number


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether elements are floating-point numbers."""
    return dtype.kind == "f" or dtype in HALVES or dtype in TINY_FLOATS


def float_text(value: float) -> str:
    """Return a C literal of a 32-bit float."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"{rounded.hex()}f" if rounded >= 0 else f"({rounded.hex()}f)"
