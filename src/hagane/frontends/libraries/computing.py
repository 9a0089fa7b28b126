"""Results of library functions as functions over the builder, for the checker and for capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Real, Tensor
from hagane.graph.types import Shape
from hagane.ops.builder import interpreting
from hagane.symbolic import Dim

_COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)


def built(
    t: Core,
    promised: Tensor | tuple[ir.DataType, Shape | None],
    function: Callable[..., Any],
    *operands: Any,
) -> Tensor:
    """Return the result of a function over the builder for operands, where a graph is built.

    The checker takes the promise: with open sizes, parts of such a function would have to be
    assumed to fit each other, which the reader of a program should not hear of. Arguments are those
    of :func:`computed`.
    """
    if t.emit.builds:
        return computed(t, promised, function, *operands)
    dtype, shape = (promised.dtype, promised.shape) if isinstance(promised, Tensor) else promised
    given = [operand for operand in operands if isinstance(operand, Tensor)]
    return t.emit.typed("Composed", given, dtype, shape)


def computed(
    t: Core,
    promised: Tensor | tuple[ir.DataType, Shape | None],
    function: Callable[..., Any],
    *operands: Any,
) -> Tensor:
    """Return the result of a function over the builder for operands.

    The checker runs it over types, capture over the values of a graph.

    Args:
        t: The interpreter.
        promised: The type of the result by the library's own rule, in the sizes that the reader
            of the program knows; or a tensor of that type.
        function: The function.
        operands: Its arguments.

    Raises:
        AssertionError: The function gives a tensor of another element type or rank.
    """
    return computed_parts(t, [promised], lambda *given: (function(*given),), *operands)[0]


@contextmanager
def composing(t: Core) -> Iterator[None]:
    """Let functions over the builder apply operators, whose constants lie on no device."""
    before, t.emit.anywhere = t.emit.anywhere, ""
    try:
        with interpreting(t.emit):
            yield
    finally:
        t.emit.anywhere = before


def computed_parts(
    t: Core,
    promised: Sequence[Tensor | tuple[ir.DataType, Shape | None]],
    function: Callable[..., Sequence[Any]],
    *operands: Any,
) -> list[Tensor]:
    """Return the several tensors that a function over the builder makes, as :func:`computed`.

    Operands that are lists of tensors are such for the function too.
    """
    types = [(p.dtype, p.shape) if isinstance(p, Tensor) else p for p in promised]
    given = [one for item in operands for one in _listed(item) if isinstance(one, Tensor)]
    dtypes = [dtype for dtype, _ in types]
    # No operator computes complex numbers.
    if any(dtype in _COMPLEX for dtype in (*dtypes, *(x.dtype for x in given))):
        return [t.emit.typed("Complex", given, dtype, shape) for dtype, shape in types]
    # Formulas take their settings, such as a slope or an epsilon, as numbers.
    unknown = any(isinstance(one, Real) for item in operands for one in _listed(item))
    if unknown and not t.emit.builds:
        return [t.emit.typed("Composed", given, dtype, shape) for dtype, shape in types]
    try:
        with composing(t):
            results = function(*operands)
    except (AttributeError, TypeError):
        if not unknown:
            raise
        t.fail("capture", "a setting of this function is a number that only the run knows; "
               "give it as a number that does not change")  # fmt: skip
    made: list[Tensor] = []
    for found, (dtype, shape) in zip(results, types, strict=True):
        one: Tensor = t.op("Identity", found) if any(found is x for x in given) else found
        one.device = one.device or "cpu"
        if one.dtype != dtype or (shape is not None and one.rank != len(shape)):
            raise AssertionError(f"{function} gives {t.show(one)}, promised {dtype}{shape}")
        if shape is not None and one.shape != shape:
            t.emit.show_sizes(one, shape)
        made.append(one)
    return made


def _listed(item: Any) -> Sequence[Any]:
    return item if isinstance(item, list | tuple) else (item,)


def several(
    t: Core, function: Callable[..., Any], x: Tensor, *shapes: Sequence[Dim]
) -> tuple[Tensor, ...]:
    """Return the results of a function over the builder that gives several of one element type.

    Args:
        t: The interpreter.
        function: The function, which takes a tensor.
        x: The tensor, whose element type the results have.
        shapes: The shapes of the results.
    """
    if not t.emit.builds:
        return tuple(t.emit.typed("Composed", [x], x.dtype, tuple(shape)) for shape in shapes)
    with interpreting(t.emit):
        made: tuple[Tensor, ...] = function(x)
    for tensor, shape in zip(made, shapes, strict=True):
        t.emit.show_sizes(tensor, tuple(shape))
    return made


def zero_is_a_size(x: Tensor, dims: Sequence[Dim]) -> int | None:
    """Return the attribute ``allowzero`` of a Reshape: 1 where a 0 is no size of the input.

    A 0 otherwise copies the size of the input's axis at that place; that is right where the two are
    the same name.
    """
    before = x.shape or ()
    plain = all(
        dim != 0 if isinstance(dim, int) else place < len(before) and dim == before[place]
        for place, dim in enumerate(dims)
    )
    return None if plain or -1 in dims else 1
