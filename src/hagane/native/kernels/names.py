"""Names of generated C functions, made of operators and sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx_ir as ir

from hagane.symbolic import Dim

# Of longer chains of operators, the others are counted; more axes too.
_MOST_OPERATORS = 4
_MOST_AXES = 6


def function_name(label: str, results: Sequence[Sequence[Dim]]) -> str:
    """Return the name of a kernel's C function, without its hash: ``conv_relu_1x64x56x56``.

    Nothing of it comes from names in the model: operators and sizes alone do.

    Args:
        label: Operators and, in quotes, a name, which is left out.
        results: Shapes of the tensors that the kernel writes, of which the first counts.
    """
    words = _words(label.split(" '")[0].split("+")) or ["kernel"]
    return "_".join([*words, *([sizes(results[0])] if results else [])])


def named(name: str, followers: Sequence[ir.Node]) -> str:
    """Return a name that its maker chose, with the operators that are computed with it."""
    return "_".join([name, *_words([node.op_type for node in followers])])


def _words(operators: Sequence[str]) -> list[str]:
    words = [re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") for text in operators]
    words = [word for word in words if word]
    if len(words) > _MOST_OPERATORS:
        words = [*words[:_MOST_OPERATORS], f"{len(words) - _MOST_OPERATORS}_more"]
    return words


def sizes(shape: Sequence[Dim]) -> str:
    """Return sizes as a part of a name, ``n`` for sizes known at run time."""
    kept = [dim for dim in shape if dim != 1] or [1]
    if len(kept) > _MOST_AXES:
        return f"{len(kept)}d"
    return "x".join(str(dim) if isinstance(dim, int) else "n" for dim in kept)
