"""ONNX Runtime's wording of errors, before hagane's own: programs search it for patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane import errors, runtime
from hagane.onnxruntime.described import NodeArg
from hagane.runtime.values.value import OrtValue

_FAIL, _ARGUMENT, _FILE, _EXCEPTION = (
    "1 : FAIL",
    "2 : INVALID_ARGUMENT",
    "3 : NO_SUCHFILE",
    "6 : RUNTIME_EXCEPTION",
)
_PROTOBUF, _ABSENT, _GRAPH = "7 : INVALID_PROTOBUF", "9 : NOT_IMPLEMENTED", "10 : INVALID_GRAPH"
# The code that ONNX Runtime gives most errors of a kind; subclasses first.
_CODES: tuple[tuple[type[errors.HaganeError], str], ...] = (
    (errors.NoSuchFile, _FILE),
    (errors.ExternalDataError, _FAIL),
    (errors.InvalidModel, _PROTOBUF),
    (errors.InvalidGraph, _GRAPH),
    (errors.UnsupportedModel, _GRAPH),
    (errors.InvalidArgument, _ARGUMENT),
    (errors.InvalidContent, _ARGUMENT),
    (errors.OutOfMemory, _EXCEPTION),
    (errors.KernelError, _FAIL),
    (errors.NotOffered, _ABSENT),
)
_NODE = re.compile(r"(?P<operator>[\w.:]+) '(?P<name>.*?)' failed: (?P<reason>.*)", re.DOTALL)
_LACKING = re.compile(r"operator '(?P<operator>\w+)'(?: of domain '(?P<domain>[\w.]+)')?")
_PLEASE = "Please fix either the inputs/outputs or the model."


def coded(error: errors.HaganeError) -> str:
    """Return the text of an error behind ONNX Runtime's code of its kind."""
    text = str(error)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), _FAIL)
    if isinstance(error, errors.KernelError) and (found := _NODE.fullmatch(text)):
        text = (
            f"Non-zero status code returned while running {found['operator']} node. "
            f"Name:'{found['name']}' Status Message: {found['reason']}"
        )
    if isinstance(error, errors.UnsupportedModel) and (lacking := _LACKING.search(text)):
        name = f"{lacking['domain'] or 'ai.onnx'}:{lacking['operator']}"
        text = f"Fatal error: {name}(-1) is not a registered function/op. {text}"
    return f"[ONNXRuntimeError] : {code} : {text}"


def worded(
    session: runtime.InferenceSession, names: Sequence[str] | None, feed: Mapping[str, Any]
) -> str | None:
    """Return what ONNX Runtime says of the names and arrays of a run, of the first that is wrong.

    Returns:
        The sentence, of a missing input without a code; None if it says nothing of them.
    """
    inputs = session.get_inputs()
    missing = missing_inputs(inputs, feed)
    if missing:
        return f"Required inputs ({missing}) are missing from input feed ({list(feed)})."
    known = {item.name: item for item in (*inputs, *session.get_overridable_initializers())}
    tests: list[Callable[[NodeArg, np.ndarray[Any, Any]], str | None]] = [_type, _rank, _sizes]
    said = next((f"Invalid input name: {name}" for name in feed if name not in known), None)
    for name, value in feed.items():
        if said is None and (array := _tensor(value)) is not None:
            found = (test(known[name], array) for test in tests)
            said = next((one for one in found if one is not None), None)
    if said is None:
        outputs = {item.name for item in session.get_outputs()}
        wrong = [name for name in names or () if name not in outputs]
        said = f"Invalid output name:{wrong[0]}" if wrong else None
    return None if said is None else f"[ONNXRuntimeError] : {_ARGUMENT} : {said}"


def missing_inputs(inputs: Sequence[NodeArg], feed: Mapping[str, Any]) -> list[str]:
    """Return the inputs that a feed lacks; those of an optional type may be left out."""
    return [
        item.name
        for item in inputs
        if item.name not in feed and not item.type.startswith("optional(")
    ]


def _tensor(value: Any) -> np.ndarray[Any, Any] | None:
    if isinstance(value, OrtValue):
        value = value.content
    try:
        return np.asarray(value) if not isinstance(value, dict) else None
    except (ValueError, TypeError):
        return None


def _type(item: NodeArg, array: np.ndarray[Any, Any]) -> str | None:
    actual = OrtValue(array.astype(object) if array.dtype.kind in "US" else array).data_type()
    if not item.type.startswith("tensor(") or actual == item.type:
        return None
    return f"Unexpected input data type. Actual: ({actual}) , expected: ({item.type})"


def _rank(item: NodeArg, array: np.ndarray[Any, Any]) -> str | None:
    if not item.shape or len(item.shape) == array.ndim:
        return None
    return (
        f"Invalid rank for input: {item.name} Got: {array.ndim} Expected: {len(item.shape)} "
        f"{_PLEASE}"
    )


def _sizes(item: NodeArg, array: np.ndarray[Any, Any]) -> str | None:
    wrong = [
        f" index: {axis} Got: {size} Expected: {dim}\n"
        for axis, (size, dim) in enumerate(zip(array.shape, item.shape, strict=False))
        if isinstance(dim, int) and dim != size
    ]
    if not wrong:
        return None
    places = "".join(wrong)
    return (
        f"Got invalid dimensions for input: {item.name} for the following indices\n{places} "
        f"{_PLEASE}"
    )
