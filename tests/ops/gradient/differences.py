"""Gradients against central differences, first and second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.gradient import pull_back

Function = Callable[..., Sequence[Any]]


def check(
    function: Function,
    *inputs: Any,
    wanted: Sequence[int] | None = None,
    second: bool = True,
    step: float = 1e-6,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> None:
    """Compare gradients with differences along drawn directions.

    Args:
        function: Maps arrays to arrays, over the builder.
        inputs: Arrays, or None for absent ones.
        wanted: Which inputs have gradients; all that hold float64 if None.
        second: Whether the gradient is compared in turn, as a function of inputs and seeds.
        step: Half of the distance between the two points of a difference.
        tolerance: Relative to the largest term.
        seed: What directions are drawn from.
    """
    rng = np.random.default_rng(seed)
    if wanted is None:
        wanted = [i for i, x in enumerate(inputs) if x is not None and x.dtype == np.float64]
    first = _compare(function, inputs, wanted, rng, step, tolerance)
    if not second:
        return
    real = [g is not None for g in first.seeds]

    def gradient(*values: Any) -> Sequence[Any]:
        given, seeds = values[: len(inputs)], list(values[len(inputs) :])
        _, pull = _pull_wanted(function, given, wanted)
        found = pull([seeds.pop(0) if is_real else None for is_real in real])
        return [
            op("Mul", given[index], 0) if g is None else op("Identity", g)
            for index, g in zip(wanted, found, strict=True)
        ]

    seeds = [g for g in first.seeds if g is not None]
    both = [*wanted, *range(len(inputs), len(inputs) + len(seeds))]
    _compare(gradient, [*inputs, *seeds], both, rng, step, 10 * tolerance)


def _pull_wanted(function: Function, inputs: Sequence[Any], wanted: Sequence[int]) -> Any:
    """Return results, and what maps their gradients to those of the wanted inputs."""

    def of_wanted(*values: Any) -> Sequence[Any]:
        given = list(inputs)
        for index, value in zip(wanted, values, strict=True):
            given[index] = value
        return function(*given)

    return pull_back(of_wanted, *(inputs[index] for index in wanted))


class _First:
    def __init__(self, seeds: Sequence[Any]):
        self.seeds = seeds


def _compare(
    function: Function,
    inputs: Sequence[Any],
    wanted: Sequence[int],
    rng: np.random.Generator,
    step: float,
    tolerance: float,
) -> _First:
    results, pull = _pull_wanted(function, inputs, wanted)
    seeds = [
        np.asarray(rng.standard_normal(y.shape), y.dtype) if y.dtype.kind == "f" else None
        for y in results
    ]
    for index, gradient in zip(wanted, pull(seeds), strict=True):
        x = inputs[index]
        if gradient is not None:
            assert gradient.shape == x.shape, f"input {index}: {gradient.shape} for {x.shape}"
            assert gradient.dtype == x.dtype, f"input {index}: {gradient.dtype} for {x.dtype}"
        for _ in range(2):
            direction = np.asarray(rng.standard_normal(x.shape), x.dtype)
            slopes = []
            for sign in (1, -1):
                moved = list(inputs)
                moved[index] = np.asarray(x + sign * step * direction, x.dtype)
                ends = function(*moved)
                slopes.append([np.asarray(y) for y in ends])
            terms = [
                (g * (upper - lower)).sum(dtype=np.float64) / (2 * step)
                for g, upper, lower in zip(seeds, *slopes, strict=True)
                if g is not None
            ]
            want = float(np.sum(terms))
            products = 0 if gradient is None else gradient * direction
            got = float(np.sum(products))
            scale = 1 + float(np.sum(np.abs(products)))
            assert abs(got - want) <= tolerance * scale, (
                f"input {index}: got {got}, differences give {want}"
            )
    return _First(seeds)


def check_operator(
    name: str,
    *inputs: Any,
    outputs: int = 1,
    domain: str = "",
    attributes: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Compare the gradients of one operator with differences."""

    def function(*values: Any) -> Sequence[Any]:
        made = op(name, *values, outputs=outputs, domain=domain, **(attributes or {}))
        return made if isinstance(made, tuple) else (made,)

    check(function, *inputs, **options)
