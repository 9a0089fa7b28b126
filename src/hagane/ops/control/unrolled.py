"""Branches, loops and scans one iteration at a time, where conditions and counts are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, op, shape_of
from hagane.ops.functions.numbers.elementary import unsqueeze


def unrolled(call: Call, n_outputs: int) -> tuple[Any, ...]:
    """Return the outputs of a call of If, Loop or Scan, made of the calls of its bodies.

    Args:
        call: Its bodies are functions over the builder; conditions and counts are known.
        n_outputs: How many outputs it has.

    Raises:
        NotDifferentiable: It is no such call.
    """
    match call.op.name:
        case "If":
            taken = "then_branch" if _number(call.inputs[0]) else "else_branch"
            return tuple(call.attributes[taken]())
        case "Loop":
            return _loop(call, n_outputs)
        case "Scan":
            return _scan(call, n_outputs)
    raise NotDifferentiable(f"{call.op.name} has no gradient: its body cannot be followed")


def _number(value: Any) -> Any:
    known = content_of(value)
    if known is None:
        raise NotDifferentiable("a condition, or a number of iterations, is not known")
    return known.ravel()[0]


def _loop(call: Call, n_outputs: int) -> tuple[Any, ...]:
    limit, condition, *states = call.inputs
    most = None if limit is None else int(_number(limit))
    going = True if condition is None else bool(_number(condition))
    iterations: list[Sequence[Any]] = []
    step = 0
    while going and (most is None or step < most):
        results = call.attributes["body"](np.array(step, np.int64), np.array(going), *states)
        going, step = bool(_number(results[0])), step + 1
        states = list(results[1 : 1 + len(states)])
        iterations.append(results[1 + len(states) :])
    stacked = [_stack(items, 0) for items in zip(*iterations, strict=True)]
    if not iterations:
        stacked = [np.zeros((0,), np.float32)] * (n_outputs - len(states))
    return (*states, *stacked)


def _stack(items: Sequence[Any], axis: int) -> Any:
    columns = [unsqueeze(item, [axis]) for item in items]
    return op("Concat", *columns, axis=axis)


def _scan(call: Call, n_outputs: int) -> tuple[Any, ...]:
    scanned = call.attr("num_scan_inputs")
    count = len(call.inputs) - scanned
    states = list(call.inputs[:count])
    axes = call.attr("scan_input_axes") or (0,) * scanned
    backwards = call.attr("scan_input_directions") or (0,) * scanned
    parts = []
    for x, axis, reverse in zip(call.inputs[count:], axes, backwards, strict=True):
        length = shape_of(x)[axis]
        pieces = op("Split", x, [1] * int(length), axis=axis, outputs=length) if length else ()
        pieces = pieces if isinstance(pieces, tuple) else (pieces,)
        parts.append([op("Squeeze", piece, [axis]) for piece in pieces[:: -1 if reverse else 1]])
    iterations: list[Sequence[Any]] = []
    for items in zip(*parts, strict=True):
        results = call.attributes["body"](*states, *items)
        states = list(results[:count])
        iterations.append(results[count:])
    out_axes = call.attr("scan_output_axes") or (0,) * (n_outputs - count)
    out_backwards = call.attr("scan_output_directions") or (0,) * (n_outputs - count)
    stacked = [
        _stack(items[:: -1 if reverse else 1], axis)
        for items, axis, reverse in zip(
            zip(*iterations, strict=True), out_axes, out_backwards, strict=True
        )
    ]
    return (*states, *stacked)
