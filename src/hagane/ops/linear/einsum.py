"""Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.symbolic import Dim


@widened
def _einsum(*xs: Array, equation: str) -> Array:
    return np.asarray(np.einsum(equation, *xs, optimize=len(xs) > 2))


def _infer_einsum(ctx: InferContext) -> Sequence[Any]:
    equation = ctx.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != ctx.n_inputs:
        ctx.fail(f"equation '{equation}' has {len(terms)} terms for {ctx.n_inputs} inputs")
    sizes: dict[str, Dim] = {}
    batches: list[tuple[Dim, ...]] = []
    for index, term in enumerate(terms):
        shape = ctx.shape(index)
        head, dots, tail = term.partition("...")
        named = len(head) + len(tail)
        if named > len(shape) or (not dots and named != len(shape)):
            ctx.fail(
                f"term '{term}' of equation '{equation}' names {named} axes, "
                f"got {ctx.tensor(index)}"
            )
        if dots:
            batches.append(shape[len(head) : len(shape) - len(tail)])
        labelled = [*zip(head, shape, strict=False)]
        labelled += zip(tail, shape[len(shape) - len(tail) :], strict=True)
        for label, dim in labelled:
            known = sizes.get(label, 1)
            if known == 1:
                sizes[label] = dim
            elif dim != 1:
                sizes[label] = ctx.unify(known, dim, f"expected equal sizes for '{label}'")
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if batches else "") + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1)
        )
    head, dots, tail = right.partition("...")
    batch = ctx.broadcast(*batches) if dots and batches else ()
    for label in head + tail:
        if label not in sizes:
            ctx.fail(f"equation '{equation}' has '{label}' in its result only")
    return [(*(sizes[c] for c in head), *batch, *(sizes[c] for c in tail))]


OPERATORS = (OpDef("Einsum", _infer_einsum, _einsum),)
