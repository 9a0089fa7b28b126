"""Checks of the debug mode: results that are not numbers, arrays that were changed too early."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd.invalid_type import user_place

# Operators whose gradients read no content of their operands and results.
_WITHOUT_CONTENT = frozenset(
    (
        "Add", "Cast", "Concat", "Expand", "Flatten", "Identity", "Mean", "Neg", "Pad",
        "ReduceMean", "ReduceSum", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Sum", "Tile",
        "Transpose", "Unsqueeze",
    )
)  # fmt: skip


def at_place(stack: Sequence[traceback.FrameSummary] | None = None) -> str:
    """Return a line with the user's file, line and code; nothing where there is none."""
    place = user_place(stack)
    return f"\nAt: {place}" if place else ""


def defined_at(function: Any) -> str:
    """Return, like ``at_place``, where a user's function is defined, or a link's forward."""
    function = getattr(function, "forward", function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return ""
    return at_place([traceback.FrameSummary(code.co_filename, code.co_firstlineno, code.co_name)])


def _has_nan(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and bool(np.isnan(array).any())


def check_numbers(label: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Refuse results that hold NaN.

    Raises:
        RuntimeError: One does; the message names the function, its place in the user's code, and
            whether an input held NaN before.
    """
    if not any(map(_has_nan, outputs)):
        return
    given = [i for i, array in enumerate(inputs) if _has_nan(array)]
    if given:
        source = f"its input {given[0]} held NaN before: no function made it"
    else:
        source = "no input held NaN"
    raise RuntimeError(f"NaN is detected on forward computation of {label}: {source}{at_place()}")


def _sum(array: Any) -> int | None:
    if not isinstance(array, np.ndarray) or array.dtype == object:
        return None
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def _retained(function: Any) -> Iterator[tuple[str, Any]]:
    for i in function._input_indexes_to_retain or ():
        yield f"input {i}", function.inputs[i].data
    for i, data in zip(
        function._output_indexes_to_retain or (),
        function._retained_output_data or (),
        strict=False,
    ):
        yield f"output {i}", data


def mark_retained(function: Any, operator: str | None = None) -> None:
    """Note where a function was applied, and the content of the arrays that it retains.

    Args:
        function: A function node that was recorded.
        operator: The operator that it applied, if that is all.
    """
    if operator not in _WITHOUT_CONTENT:
        function.retained_sums = {name: _sum(data) for name, data in _retained(function)}


def check_retained(function: Any) -> None:
    """Refuse a gradient from arrays that were changed in place since they were retained.

    Raises:
        RuntimeError: One was.
    """
    if function.retained_sums is None:
        return
    for name, data in _retained(function):
        if function.retained_sums.get(name) != _sum(data):
            raise RuntimeError(
                f"backward of {function.title}: the array of {name}, {data.dtype}"
                f"{list(data.shape)}, was changed in place after the function was applied; change "
                f"a copy, or change it after backward{at_place(function.stack)}"
            )


def check_used(names: Sequence[str]) -> None:
    """Refuse parameters that the loss does not depend on.

    Raises:
        RuntimeError: There are some; all of them are listed.
    """
    if names:
        raise RuntimeError(
            "the loss does not depend on these parameters, so they have no gradient:\n"
            + "\n".join(f"  {name}" for name in names)
            + "\nuse them, or take their links out of updates by link.disable_update()"
        )
