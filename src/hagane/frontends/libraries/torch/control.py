"""Control flow that programs spell as functions of PyTorch, and functions of sizes.

https://docs.pytorch.org/docs/stable/cond.html, ``torch/_higher_order_ops`` of PyTorch's sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Return what one of two functions returns."""
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)


def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """Call a function on its own results as long as a condition holds."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        found = body_fn(*carried)
        carried = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    return carried


def mapped(f: Any, xs: Any, *args: Any) -> Any:
    """Return a function's results for each item of the first axis, stacked."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, form = pytree.tree_flatten(xs)
    found = [
        f(pytree.tree_unflatten([leaf[place] for leaf in leaves], form), *args)
        for place in range(leaves[0].shape[0])
    ]
    parts = [pytree.tree_flatten(one)[0] for one in found]
    shape = pytree.tree_flatten(found[0])[1]
    stacked = [torch.stack([one[k] for one in parts]) for k in range(len(parts[0]))]
    return pytree.tree_unflatten(stacked, shape)


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger number."""
    return max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number."""
    return min(a, b)


def sym_int(a: Any) -> Any:
    """Return the whole part of a number."""
    return int(a)


def sym_float(a: Any) -> Any:
    """Return a number as a float."""
    return float(a)


def sym_not(a: Any) -> Any:
    """Return the opposite of a truth value."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return one of two values."""
    return t if b else f


def sym_sum(args: Any) -> Any:
    """Return the sum of numbers."""
    return sum(args)


def sym_sqrt(a: Any) -> Any:
    """Return the square root of a number."""
    return math.sqrt(a)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "cond": cond,
    "_higher_order_ops.cond": cond,
    "_higher_order_ops.cond.cond": cond,
    "while_loop": while_loop,
    "_higher_order_ops.while_loop": while_loop,
    "_higher_order_ops.while_loop.while_loop": while_loop,
    "_higher_order_ops.map": mapped,
    "_higher_order_ops.map.map": mapped,
    **{f.__name__: f for f in (
        sym_max, sym_min, sym_int, sym_float, sym_not, sym_ite, sym_sum, sym_sqrt)},
}  # fmt: skip
