"""Walk calls back and sum gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hagane.errors import NotDifferentiable
from hagane.graph.types import OptionalType, SequenceType, TensorType, Type
from hagane.ops.builder import Call, op, type_of
from hagane.ops.definition import Unsupported


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
        inputs: Values whose gradients are wanted: arguments, or what calls made on the way.
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


def is_continuous(value: Any) -> bool:
    """Whether a value holds real numbers, so that it can have a gradient."""
    return value is not None and _is_real(type_of(value))


def _is_real(type_: Type | None) -> bool:
    match type_:
        case TensorType(dtype=dtype):
            return dtype.is_floating_point()
        case SequenceType(element=element) | OptionalType(element=element):
            return element is None or _is_real(element)
    return False


def _parts(call: Call, got: Sequence[Any], reached: set[int]) -> Iterable[tuple[Any, Any]]:
    """Yield values that a call depends on, each with what the call adds to its gradient."""
    sources = (*call.inputs, *call.captured)
    if not any(id(value) in reached for value in sources):
        return
    if isinstance(call.op.vjp, Unsupported):
        raise NotDifferentiable(f"{call.op.name} has no gradient: {call.op.vjp.reason}")
    for value, gradient in zip(sources, call.op.vjp(call, got), strict=True):
        if gradient is None or id(value) not in reached:
            continue
        made = gradient() if callable(gradient) else gradient
        if made is not None:
            yield value, made


def _add(sums: dict[int, Any], value: Any, gradient: Any) -> None:
    known = sums.get(id(value))
    sums[id(value)] = gradient if known is None else op("Add", known, gradient)
