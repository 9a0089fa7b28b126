"""Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from string import ascii_letters
from typing import Any

import numpy as np

from hagane.ops.builder import Call, dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import unsqueeze
from hagane.ops.functions.tensors.shapes import sizes_of, unbroadcast
from hagane.ops.precision import widened
from hagane.symbolic import Dim


@widened
def _einsum(*xs: Array, equation: str) -> Array:
    return np.asarray(np.einsum(equation, *xs, optimize=len(xs) > 2))


def _implied(left: str) -> str:
    """Return the result's term of an equation without arrow."""
    letters = left.replace(",", "").replace("...", "")
    once = sorted(c for c in set(letters) if letters.count(c) == 1)
    return ("..." if "..." in left else "") + "".join(once)


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
        right = _implied(left)
    head, dots, tail = right.partition("...")
    batch = ctx.broadcast(*batches) if dots and batches else ()
    for label in head + tail:
        if label not in sizes:
            ctx.fail(f"equation '{equation}' has '{label}' in its result only")
        if (head + tail).count(label) > 1:
            ctx.fail(f"equation '{equation}' has '{label}' more than once in its result")
    return [(*(sizes[c] for c in head), *batch, *(sizes[c] for c in tail))]


def named_terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the terms of operands and result, with letters in the place of dots.

    Args:
        equation: The attribute.
        ranks: How many axes each operand has.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:
        right = _implied(left)
    terms = left.split(",")
    free = [c for c in ascii_letters if c not in left]
    dotted = [
        rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "..." in term
    ]
    dots = "".join(free[: max(dotted, default=0)])
    named = [
        term.replace("...", dots[len(dots) - (rank - len(term) + 3) :]) if "..." in term else term
        for term, rank in zip(terms, ranks, strict=True)
    ]
    return named, right.replace("...", dots)


def _einsum_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    terms, result = named_terms(call.attr("equation"), [rank_of(x) for x in call.inputs])
    return [
        partial(_operand_gradient, call, gradients[0], terms, result, index)
        for index in range(len(terms))
    ]


def _operand_gradient(call: Call, g: Any, terms: list[str], result: str, index: int) -> Any:
    """Contract the gradient with the other operands, then undo the operand's term."""
    operand, term = call.inputs[index], terms[index]
    others = [(t, x) for i, (t, x) in enumerate(zip(terms, call.inputs, strict=True)) if i != index]
    left = [result, *(t for t, _ in others)]
    distinct = "".join(dict.fromkeys(term))
    found = "".join(c for c in distinct if any(c in t for t in left))
    values = [g, *(x for _, x in others)]
    if left != [found]:
        g = op("Einsum", *values, equation=f"{','.join(left)}->{found}")
    # A letter that stands in this term alone was summed: all its elements have one gradient.
    g = unsqueeze(g, [i for i, c in enumerate(distinct) if c not in found])
    if distinct != term:
        return _on_diagonal(g, operand, term, distinct)
    if len(found) == len(distinct):
        return unbroadcast(g, operand)
    return unbroadcast(op("Expand", g, sizes_of(operand)), operand)


def _on_diagonal(g: Any, operand: Any, term: str, distinct: str) -> Any:
    """Return zeros with a gradient where the axes of each repeated letter agree."""
    free = [c for c in ascii_letters if c not in term]
    names, factors, seen = "", [g], set[str]()
    equation = [distinct]
    for axis, letter in enumerate(term):
        if letter not in seen:
            seen.add(letter)
            names += letter
            continue
        other = free.pop()
        size = shape_of(operand)[axis]
        square = op("ConstantOfShape", [size, size], value=np.zeros(1, dtype_of(operand).numpy()))
        factors.append(op("EyeLike", square))
        equation.append(letter + other)
        names += other
    kept = op("Einsum", *factors, equation=f"{','.join(equation)}->{names}")
    return op("Expand", kept, sizes_of(operand))


def composed_einsum(*xs: Any, equation: str) -> Any:
    """Return products of two operands after another, or a sum over one, as products of matrices.

    None where a letter repeats in an operand, or sizes are broadcast by letters.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        right = _implied(left)
    if "." in equation or any(len(set(t)) < len(t) for t in terms):
        return None
    if len(xs) > 2:
        return _pairwise(xs, terms, right)
    values = list(xs)
    for index, term in enumerate(terms):
        others = right + "".join(terms[:index] + terms[index + 1 :])
        alone = [axis for axis, letter in enumerate(term) if letter not in others]
        if alone:
            values[index] = op("ReduceSum", values[index], alone, keepdims=0)
            terms[index] = "".join(letter for letter in term if letter in others)
    if len(values) == 1:
        return op("Transpose", values[0], perm=[terms[0].index(letter) for letter in right])
    (a, b), (of_a, of_b) = values, terms
    sizes = dict(zip(of_b, shape_of(b), strict=True)) | dict(zip(of_a, shape_of(a), strict=True))
    for letter, size in zip(of_b, shape_of(b), strict=True):
        if size != sizes[letter] and 1 in (size, sizes[letter]):
            return None  # it is broadcast
    batch = [c for c in right if c in of_a and c in of_b]
    summed = [c for c in of_a if c in of_b and c not in right]
    rows = [c for c in right if c in of_a and c not in of_b]
    columns = [c for c in right if c in of_b and c not in of_a]

    def matrix(x: Any, term: str, first: list[str], second: list[str]) -> Any:
        order = [term.index(c) for c in (*batch, *first, *second)]
        turned = op("Transpose", x, perm=order)
        shape = [*(sizes[c] for c in batch), *(_total(sizes, part) for part in (first, second))]
        return op("Reshape", turned, shape, allowzero=1)

    y = op("MatMul", matrix(a, of_a, rows, summed), matrix(b, of_b, summed, columns))
    made = [*batch, *rows, *columns]
    y = op("Reshape", y, [sizes[c] for c in made], allowzero=1)
    return op("Transpose", y, perm=[made.index(c) for c in right])


def _pairwise(xs: Sequence[Any], terms: Sequence[str], right: str) -> Any:
    """Return the product of more operands: first that of the two that leave the fewest axes."""

    def kept(pair: tuple[int, int]) -> str:
        others = right + "".join(term for i, term in enumerate(terms) if i not in pair)
        return "".join(c for c in dict.fromkeys(terms[pair[0]] + terms[pair[1]]) if c in others)

    pair = min(combinations(range(len(xs)), 2), key=lambda each: len(kept(each)))
    first, second = pair
    equation = f"{terms[first]},{terms[second]}->{kept(pair)}"
    joined = composed_einsum(xs[first], xs[second], equation=equation)
    if joined is None:
        return None
    rest = [i for i in range(len(xs)) if i not in pair]
    equation = f"{','.join([kept(pair), *(terms[i] for i in rest)])}->{right}"
    return composed_einsum(joined, *(xs[i] for i in rest), equation=equation)


def _total(sizes: dict[str, Any], letters: Sequence[str]) -> Any:
    total: Any = 1
    for letter in letters:
        total = total * sizes[letter]
    return total


OPERATORS = (OpDef("Einsum", _infer_einsum, _einsum, compose=composed_einsum, vjp=_einsum_vjp),)
