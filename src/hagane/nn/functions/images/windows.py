"""Sizes of sliding windows, as Chainer counts them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

from hagane.errors import WrongLength
from hagane.nn.autograd.debugging import at_place
from hagane.nn.functions.applying import function, shape_of

_Function = TypeVar("_Function", bound=Callable[..., Any])


def get_conv_outsize(size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1) -> int:
    """Return the number of windows along an axis.

    Args:
        size: The size of the axis.
        k: Of the window.
        s: The stride.
        p: Padding on each side.
        cover_all: Whether every element lies in a window, the last reaching over the end.
        d: The dilation.
    """
    extent = k + (k - 1) * (d - 1)
    if cover_all:
        return (size + p * 2 - extent + s - 1) // s + 1
    return (size + p * 2 - extent) // s + 1


def get_deconv_outsize(
    size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1
) -> int:
    """Return the size of an axis from the number of its windows."""
    extent = (k - 1) * d + 1
    if cover_all:
        return s * (size - 1) + extent - s + 1 - 2 * p
    return s * (size - 1) + extent - 2 * p


def as_tuple(x: Any, n: int) -> tuple[int, ...]:
    """Return a number ``n`` times, or a sequence of that length.

    Raises:
        WrongLength: It has another length.
    """
    try:
        if not isinstance(x, str) and hasattr(x, "__getitem__"):
            found = tuple(operator.index(one) for one in x)
        else:
            found = (operator.index(x),) * n
    except TypeError:
        raise TypeError(f"expected an integer or {n} of them, got {x!r}{at_place()}") from None
    if len(found) != n:
        raise WrongLength(f"expected {n} numbers, got {x}")
    return found


def of_rank(over: _Function, ndim: int) -> _Function:
    """Return a function over any number of axes as that over ``ndim``, under its name.

    Args:
        over: A function of (batch, channels, *sizes), whose name ends in ``_nd``.
        ndim: The number of axes of ``sizes``.
    """
    name = over.__name__.replace("_nd", f"_{ndim}d")

    @functools.wraps(over)
    def applied(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = len(shape_of(x)) - 2
        if found != ndim:
            raise ValueError(
                f"The number of dimensions under channel dimension of the input 'x' should be "
                f"{ndim} for {name}. But the actual ndim was {found}."
            )
        return over(x, *args, **kwargs)

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"Return the result of ``{over.__name__}`` for {ndim} axes of sizes."
    return function("x")(applied)  # type: ignore[return-value]
