"""A program and its graph, run on the same inputs."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import hagane
from hagane.graph import to_proto

from .program import Program

onnxruntime.set_default_logger_severity(3)


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result in order."""
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    elif isinstance(value, torch.Tensor):
        yield value.detach().numpy()
    elif value is not None:
        yield np.asarray(value)


def called(program: Program, case: tuple[Any, ...]) -> list[Any]:
    """Return what the program itself returns; arrays are tensors for PyTorch's programs."""
    names = {module.__name__ for module in vars(sys.modules[program.code.__module__]).values()
             if hasattr(module, "__path__")}  # fmt: skip
    wrap = torch.from_numpy if "torch" in names else np.asarray
    given = [wrap(a.copy()) if isinstance(a, np.ndarray) else copy.copy(a) for a in case]
    with torch.no_grad():
        return list(flat(program.function(*given)))


def compare(program: Program, cases: Any, *, engine: bool = False) -> str:
    """Return how a program and its graph differ, empty if they do not.

    ONNX Runtime runs the graph, and hagane's reference kernels or its engine.
    """
    model = hagane.capture(program.function, **program.types)
    proto = to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    content = proto.SerializeToString()
    inputs = {value.name for value in model.graph.inputs}
    names = list(inspect.signature(program.code).parameters)
    with pytest.MonkeyPatch.context() as patch:
        if not engine:
            patch.setenv("HAGANE_ENGINE", "reference")
        sessions = [onnxruntime.InferenceSession(content), hagane.InferenceSession(content)]
    for case in cases:
        expected = called(program, case)
        feeds = {n: np.array(a) for n, a in zip(names, case, strict=False) if n in inputs}
        for session in sessions:
            told = _unlike(expected, session.run(None, feeds))
            if told:
                return f"{type(session).__module__} on {case}: {told}"
    return ""


def _unlike(expected: list[Any], found: list[Any]) -> str:
    if any(np.shape(a) != np.shape(b) for a, b in zip(expected, found, strict=False)) or (
        len(found) != len(expected)
    ):  # a list whose length the data decide is one output
        flat_ones = [[np.zeros(0), *(np.ravel(a) for a in x)] for x in (expected, found)]
        expected, found = ([np.concatenate(x)] for x in flat_ones)
    for ours, theirs in zip(found, expected, strict=True):
        if np.shape(ours) != np.shape(theirs) or not np.allclose(
            ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True
        ):
            return f"{ours} instead of {theirs}"
    return ""


def lines_not_run(program: Program) -> set[int]:
    """Return the lines of a program that none of its cases runs."""
    code = program.code.__code__
    lines = {line for part in _codes(code) for _, _, line in part.co_lines() if line}
    run: set[int] = set()
    parts = set(_codes(code))

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code in parts:
            run.add(frame.f_lineno)
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for case in program.cases:
            called(program, case)
    finally:
        sys.settrace(before)
    return {line for line in lines if line > code.co_firstlineno} - run - _headers(program.code)


def _codes(code: Any) -> Iterator[Any]:
    yield code
    for inner in code.co_consts:
        if hasattr(inner, "co_lines"):
            yield from _codes(inner)


def _headers(function: Any) -> set[int]:
    """Return the lines of decorators and of the head of a function."""
    lines, first = inspect.getsourcelines(function)
    head = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    return set(range(first, first + head + 1))
