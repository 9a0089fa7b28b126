"""Random NumPy arrays of the types that the cases state.

A type is ``float32[batch, 3, height]``; ``list[T, U]`` and ``tuple[T, U]``, with an element for
each type; ``list[T, n]``, with ``n`` elements of one type; or an integer expression.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .case import Case

FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "abs": abs}


def evaluate(expression: ast.expr, sizes: Mapping[str, int]) -> int:
    """Return the value of an integer expression over the symbols."""
    names = {"__builtins__": {}, **FUNCTIONS, **sizes}
    return int(eval(ast.unparse(expression), names))


def draw(node: ast.expr, sizes: Mapping[str, int], high: int, random: np.random.Generator) -> Any:
    """Return a value of the type: normal floating-point numbers, integers in [0, high)."""
    if not isinstance(node, ast.Subscript):
        return evaluate(node, sizes)
    assert isinstance(node.value, ast.Name)
    head = node.value.id
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if head == "list" and len(parts) == 2 and not isinstance(parts[1], ast.Subscript):
        return [draw(parts[0], sizes, high, random) for _ in range(evaluate(parts[1], sizes))]
    if head in ("list", "tuple"):
        elements = [draw(part, sizes, high, random) for part in parts]
        return elements if head == "list" else tuple(elements)
    shape = [evaluate(part, sizes) for part in parts]
    dtype = np.dtype(head)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, high, shape).astype(dtype)


def draw_arrays(case: Case, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
    """Return a value for each argument of the case."""
    random = np.random.default_rng(seed)
    return {
        name: draw(ast.parse(text, mode="eval").body, sizes, case.high.get(name, 2), random)
        for name, text in case.inputs.items()
    }
