"""Random inputs of the types that the cases state."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.models.case import Case

FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "min": min, "max": max, "abs": abs}


def split(text: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def make_array(text: str, sizes: Mapping[str, int], high: int, random: np.random.Generator) -> Any:
    """Return an array of the type ``text``, or a list of them for ``list[...]``.

    Floating-point elements are uniform in [0, 1), integers in [0, high).
    """
    match = re.fullmatch(r"(\w+)\[(.*)\]", text.strip(), re.DOTALL)
    if match is None:
        raise ValueError(f"expected a type such as float32[batch, 3], got {text!r}")
    head, inner = match.groups()
    if head == "list":
        return [make_array(part, sizes, high, random) for part in split(inner)]
    shape = tuple(int(eval(part, {**FUNCTIONS, **sizes})) for part in split(inner))
    dtype = np.dtype(head)
    if dtype.kind == "f":
        return random.random(shape).astype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    return random.integers(0, high, shape).astype(dtype)


def make_inputs(case: Case, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Any]:
    """Return an array, or a list of arrays, for each argument of the case."""
    random = np.random.default_rng(seed)
    return {
        name: make_array(text, sizes, case.high.get(name, 2), random)
        for name, text in case.inputs.items()
    }
