"""Calls of PyTorch, run for real and through the checker.

A section of calls is written as text: a line of inputs, then indented lines of calls::

    x: float32[n=2, 3]; i: int64[4] < 3
        torch.relu(x)
        x[:, i]; x.sum()

Sizes with a name are symbols for the checker, with the number as example. ``<`` says below what
the integers of an input lie. Statements before the last ``;`` of a call run first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.shapes.domain import Shapes
from hagane.frontends.python.values.type_text import parse_type
from hagane.frontends.python.values.values import (
    MISSING,
    ListRef,
    Many,
    Origin,
    Place,
    Real,
    Tensor,
    Truth,
    Unknown,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Expr, evaluate, symbols_of
from hagane.symbolic.questions import Knowledge

_HEAD = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
"""


@dataclass(frozen=True)
class Call:
    """One call: its source and the types of its inputs as text."""

    source: str
    inputs: tuple[tuple[str, str, int], ...]  # name, type, integers lie below

    def __str__(self) -> str:
        return self.source

    @property
    def sizes(self) -> dict[str, int]:
        """The named sizes with those of the example."""
        return {
            name: int(size)
            for _, text, _ in self.inputs
            for name, size in re.findall(r"(\w+)=(\d+)", text)
        }

    def module(self) -> str:
        """Return the source of a module whose function ``call`` does it."""
        *before, last = self.source.split("; ")
        names = ", ".join(name for name, _, _ in self.inputs)
        body = "".join(f"    {line}\n" for line in (*before, f"return {last}"))
        return f"{_HEAD}\ndef call({names}):\n{body}"


@dataclass(frozen=True)
class Section:
    """Calls with the same inputs."""

    title: str
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        return self.title


def sections(text: str) -> list[Section]:
    """Return the sections that a text describes."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        elif line.strip():
            found.append((line.strip(), []))
    return [_section(title, calls) for title, calls in found]


def _section(title: str, calls: list[str]) -> Section:
    inputs = []
    for part in title.split(";"):
        name, _, type_ = part.partition(":")
        type_, _, limit = type_.partition("<")
        if type_.strip():
            inputs.append((name.strip(), type_.strip(), int(limit or 0)))
    return Section(title, tuple(Call(call, tuple(inputs)) for call in calls))


# In PyTorch.


def made_input(text: str, limit: int, sizes: Mapping[str, int]) -> torch.Tensor:
    """Return a tensor of a type; floats lie between 0.1 and 0.9, integers below ``limit``."""
    name, _, axes = text.partition("[")
    shape = []
    for axis in filter(None, (a.strip() for a in axes.rstrip("]").split(","))):
        label, _, number = axis.partition("=")
        shape.append(sizes.get(label, int(number)) if number else sizes.get(label) or int(axis))
    dtype = getattr(torch, name)
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return (torch.rand(shape) * 0.8 + 0.1).to(dtype)
    low, high = (0, limit) if limit else (1, 3)
    return torch.randint(low, high, shape, dtype=dtype)


def real(call: Call, sizes: Mapping[str, int]) -> Any:
    """Return the types of what PyTorch returns, or the exception that it raises."""
    torch.manual_seed(0)
    inputs = [made_input(text, limit, sizes) for _, text, limit in call.inputs]
    names: dict[str, Any] = {}
    exec(compile(call.module(), "call", "exec"), names)
    try:
        return described(names["call"](*inputs))
    except Exception as error:  # whatever PyTorch raises for a wrong call
        return error


def described(value: Any) -> Any:
    """Return the type of a real value: element type and shape of tensors, content of the rest."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch."), tuple(value.shape)
    if isinstance(value, tuple | list):
        return [described(item) for item in value]
    return value


# Through the checker.


@dataclass
class Inferred:
    """What the checker said: the type of the result, and what it found wrong or did not know."""

    result: Any
    errors: list[str]
    unknown: list[str]
    invented: set[str]
    knowledge: Knowledge

    def assumes(self, sizes: Mapping[str, int]) -> bool:
        """Whether all that the checker assumed holds at these sizes."""
        self.knowledge.sample = dict(sizes)
        return self.knowledge.sample_takes(self.knowledge.path)


@cache
def inferred(call: Call, folder: Path, symbolic: bool) -> Inferred:
    """Return what the checker infers for a call, with symbols for named sizes if ``symbolic``."""
    file = folder / "call.py"
    file.write_text(call.module())
    knowledge = Knowledge(sample=dict(call.sizes))
    t = Interpreter(folder, LibraryTables(), partial(Shapes, knowledge))
    module = t.load_source(file, "call")
    function = t.module_attribute(module, "call")
    assert function is not MISSING
    arguments = []
    for name, text, _ in call.inputs:
        text = re.sub(r"\w+=(\d+)", r"\1", text) if not symbolic else text
        made = t.make_value(parse_type(text), name, "torch.Tensor")
        made.origin = Origin(Place(str(file), 1, 1, 1, 1), name)
        arguments.append(made)
    t.frame = t.module_frame(module)
    t.collector.nodes[t.frame.key] = function.node
    errors = []
    try:
        result = t.settle(t.call(function, arguments, {}))
        result = shown(t, result)
    except CheckError as error:
        errors, result = [error.message], None
    knowledge.close()
    report = t.collector.report
    errors += [
        f"{e.message} (remedy: {e.remedy})" if e.remedy else e.message for e in report.errors
    ]
    return Inferred(
        result, errors, [n.message for n in report.unknown], set(knowledge.nameless), knowledge
    )


def shown(t: Interpreter, value: Any) -> Any:
    """Return the type of an interpreted value in the form of :func:`described`."""
    if isinstance(value, Tensor):
        return dtype_name(value.dtype), value.shape
    if isinstance(value, ListRef) and isinstance(t.unwrap(value), Many):
        value = t.unwrap(value)
    if isinstance(value, Many):
        return Many(shown(t, value.element), value.length)
    if isinstance(value, Unknown | Real | Truth):
        return value
    plain = t.unwrap(value)
    if isinstance(plain, tuple | list):
        return [shown(t, item) for item in plain]
    return getattr(plain, "name", plain) if hasattr(plain, "kind") else plain


def agrees(found: Any, expected: Any, sizes: Mapping[str, int], invented: set[str]) -> bool:
    """Whether an inferred type is the real one at these sizes."""
    if isinstance(found, Expr):
        if symbols_of(found) & invented:
            return isinstance(expected, int)
        return evaluate(found, sizes) == expected
    if isinstance(found, Many):
        return agrees(found.length, len(expected), sizes, invented) and all(
            agrees(found.element, item, sizes, invented) for item in expected
        )
    if isinstance(found, Real):
        return isinstance(expected, float)
    if isinstance(found, Truth):
        return isinstance(expected, bool)
    if isinstance(found, tuple | list) and isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(
            agrees(a, b, sizes, invented) for a, b in zip(found, expected, strict=True)
        )
    if isinstance(found, float) and isinstance(expected, float):
        return abs(found - expected) < 1e-6 * max(1.0, abs(expected))
    return type(found) is type(expected) and bool(found == expected)
