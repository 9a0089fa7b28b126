"""Walk calls back and sum gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hagane.errors import NotDifferentiable
from hagane.graph.types import SequenceType
from hagane.ops.builder import Call, is_continuous, op, type_of
from hagane.ops.definition import Unsupported
from hagane.ops.gradient.reach import either, watched


def accumulate(
    calls: Sequence[Call],
    outputs: Iterable[Any],
    gradients: Iterable[Any],
    inputs: Sequence[Any],
    *,
    completed: Callable[[Any, Any], Any] | None = None,
) -> list[Any]:
    """Return the gradients of ``inputs``.

    Values are told apart by identity: the objects in ``outputs`` and ``inputs`` have to be those
    that the calls hold. The rules run in the interpretation of the values, or in the active one.

    Args:
        calls: The calls that lead from inputs to outputs, in an order in which they can be made;
            others among them do no harm. Each has its outputs.
        outputs: The values that are differentiated.
        gradients: The gradient of each output, in its shape and element type; None for zero.
        inputs: Values whose gradients are wanted: arguments, or results of calls on the way.
        completed: Is called with each value that depends on an input, and its gradient, once all
            parts of that are summed; returns the gradient to go on with.

    Returns:
        One gradient an input, of its shape; None where no output depends on it.

    Raises:
        NotDifferentiable: An operator on the way has no gradient.
    """
    reached = _reached(calls, inputs)
    wanted = {id(value) for value in inputs}
    sums: dict[int, Any] = {}
    for value, gradient in zip(outputs, gradients, strict=True):
        if gradient is not None and id(value) in reached:
            _add(sums, value, gradient)
    found: dict[int, Any] = {}
    for call in reversed(calls):
        got = [sums.pop(id(value), None) for value in call.outputs]
        if all(gradient is None for gradient in got):
            continue
        for index, value in enumerate(call.outputs):
            if got[index] is not None:
                if completed is not None:
                    got[index] = completed(value, got[index])
                if id(value) in wanted:
                    found[id(value)] = got[index]
        for value, gradient in _parts(call, got, reached):
            _add(sums, value, gradient)
    if completed is not None:
        left = {id(value): value for value in inputs if id(value) in sums}
        for key, value in left.items():
            sums[key] = completed(value, sums[key])
    return [sums.get(id(value), found.get(id(value))) for value in inputs]


def _reached(calls: Sequence[Call], inputs: Sequence[Any]) -> set[int]:
    """Return the identities of values that depend on inputs by way of real numbers."""
    reached = {id(value) for value in inputs if is_continuous(value)}
    for call in calls:
        if any(id(value) in reached for value in (*call.inputs, *call.captured)):
            reached.update(id(value) for value in call.outputs if is_continuous(value))
    return reached


def _parts(call: Call, got: Sequence[Any], reached: set[int]) -> Iterable[tuple[Any, Any]]:
    """Yield values that a call depends on, each with the call's addend of its gradient."""
    sources = (*call.inputs, *call.captured)
    if not any(id(value) in reached for value in sources):
        return
    vjp = call.op.vjp
    if isinstance(vjp, Unsupported):
        raise NotDifferentiable(f"{call.op.name} has no gradient: {vjp.reason}")
    # Of values that bodies read, only wanted ones are followed.
    call = replace(call, captured=tuple(v for v in call.captured if id(v) in reached))
    sources = (*call.inputs, *call.captured)
    reach = watched()
    comes = True if reach is None else reach.any_of(got)
    for value, gradient in zip(sources, vjp(call, got), strict=True):
        if gradient is None or id(value) not in reached:
            continue
        made = gradient() if callable(gradient) else gradient
        if made is not None:
            if reach is not None:
                reach.note(made, comes)
            yield value, made


def _add(sums: dict[int, Any], value: Any, gradient: Any) -> None:
    known = sums.get(id(value))
    if known is None:
        sums[id(value)] = gradient
        return
    sums[id(value)] = total = _sum(known, gradient)
    reach = watched()
    if reach is not None:
        reach.note(total, either(reach.comes(known), reach.comes(gradient)))


def _sum(x: Any, y: Any) -> Any:
    if isinstance(type_of(x), SequenceType):
        return op("SequenceMap", x, y, body=lambda a, b: [op("Add", a, b)])
    return op("Add", x, y)
