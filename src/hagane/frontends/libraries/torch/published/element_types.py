"""Element types that PyTorch's operators take on the CPU: others are refused.

They lie in ``element_types.txt``, which ``samples.py`` writes: a line for each function, with the
places and names of the operands that have the type, and the types, singly or in groups. Texts that
calls give stand after ``~``, where the types depend on them; calls with others are not known.
``promoted`` stands before operands that are converted to their common type first. A method that has
its function's line is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hagane.errors import HaganeError
from hagane.frontends.libraries.torch.operands import is_scalar, result_dtype
from hagane.frontends.libraries.torch.published.overflow import refuse_overflow
from hagane.frontends.libraries.torch.published.signatures import METHODS
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    DType,
    Tensor,
    Value,
)
from hagane.graph.types import dtype_name

GROUPS = {
    "integers": ("uint8", "int8", "int16", "int32", "int64"),
    "floats": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
TYPES = ("bool", *(name for names in GROUPS.values() for name in names))
_PROMOTED = "promoted"
TEXTS = "~"
# Functions that Python's operators call.
_OPERATORS = {
    "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "invert": "bitwise_not",
}  # fmt: skip

_EITHER_ORDER = ("torch.nn.functional.embedding_bag",)  # of weights and indices
_POWERS = ("pow", "pow_", "ipow")


@dataclass(frozen=True, slots=True)
class _Line:
    """A function's operands, by place and name, and the types that it takes."""

    operands: tuple[tuple[int, str], ...]
    types: frozenset[str]
    promotes: bool


def checked(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
    run: Callable[[], Value],
) -> Value:  # fmt: skip
    """Return the result of a call that ``run`` makes, unless PyTorch has no code for it.

    Raises:
        CheckError: Its elements are of a type that the operator does not take, or cannot hold the
            number that it fills them with.
    """
    try:
        made = run()
    except HaganeError:
        raise
    except Exception:
        _refuse(core, name, arguments, keywords)
        raise
    _refuse(core, name, arguments, keywords)
    refuse_overflow(core, name, arguments, keywords, made)
    return made


def _refuse(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> None:
    if core.emit.builds:  # whose operators are others
        return
    line = _line(name, texts_of([*arguments, *keywords.values()]))
    if line is None:
        return
    if name.rpartition(".")[2] in _POWERS and isinstance(
        keywords.get("exponent", arguments[-1] if arguments else None), bool
    ):  # a power of zero or one, which is a copy
        return
    first_two = arguments[:2] if name in _EITHER_ORDER else ()
    if first_two and isinstance(first_two[0], Tensor) and first_two[0].dtype.is_floating_point():
        arguments = [*reversed(first_two), *arguments[2:]]
    values = [*_operands(line, arguments, keywords)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    if any(x.kind != TORCH.tensor or x.device != "cpu" for x in tensors):
        return
    asked = [v.dtype for v in (*arguments, *keywords.values()) if isinstance(v, DType)]
    if asked:  # which operands are converted to
        first = common = asked[0]
    elif tensors and all(isinstance(value, Tensor) or is_scalar(value) for value in values):
        first, common = tensors[0].dtype, result_dtype(values)
    else:
        return
    found = (common,) if line.promotes else (common, first)
    names = [dtype_name(dtype) for dtype in found]
    if any(name not in TYPES or name in line.types for name in names):
        return
    told = written(line.types).split()
    expected = ", ".join(told[:-1]) + " or " * (len(told) > 1) + told[-1]
    given = f"dtype=torch.{names[0]}" if asked else core.show(tensors[0])
    converted = f", converted to {dtype_name(common)}" if common != first else ""
    core.fail(
        "dtype-mismatch",
        f"expected elements of type {expected} on the CPU, got {given}{converted}",
        *tensors[:1],
        remedy="" if asked else _remedy(names[0], line.types),
    )


def _remedy(given: str, types: Collection[str]) -> str:
    if given in GROUPS["complex"] and "float32" in types:
        return "take its .real, .imag or .abs()"
    for name, method in (("float32", "float"), ("int64", "long"), ("bool", "bool")):
        if name in types:
            return f"convert it with .{method}()"
    return "convert it with .to(torch.complex64)" if "complex64" in types else ""


def _operands(
    line: _Line, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Iterator[Value]:
    for place, name in line.operands:
        names = (name, *(other for other, own in TORCH.synonyms.items() if own == name))
        value = next((keywords[key] for key in names if key in keywords), None)
        if 0 <= place < len(arguments):
            value = arguments[place]
        yield from value if isinstance(value, list | tuple) else [] if value is None else [value]


def texts_of(values: Sequence[object]) -> str:
    """Return the texts that a call gives, as they stand after a name in the table."""
    texts = sorted(value for value in values if isinstance(value, str))
    return TEXTS + TEXTS.join("_".join(text.split()) for text in texts)


def _line(name: str, texts: str) -> _Line | None:
    names = [name]
    if name.startswith(METHODS):
        method = name.removeprefix(METHODS)
        names.append(f"{TORCH.root}.{_OPERATORS.get(method, method)}")
    keys = (key for own in names for key in (own, own + texts))
    return next((_table()[key] for key in keys if key in _table()), None)


@cache
def _table() -> dict[str, _Line]:
    text = files(__package__).joinpath("element_types.txt").read_text(encoding="utf-8")
    return dict(map(_read, text.splitlines()))


def _read(text: str) -> tuple[str, _Line]:
    told, _, types = text.partition(": ")
    name, *operands = told.split()
    placed = [operand.partition("=") for operand in operands if operand != _PROMOTED]
    known = tuple((int(place or -1), own) for place, _, own in placed)
    flat = frozenset(t for word in types.split() for t in GROUPS.get(word, (word,)))
    return name, _Line(known, flat, _PROMOTED in operands)


def written(types: Collection[str]) -> str:
    """Return types as the table has them: groups that are whole by their name."""
    found = ["bool"] * ("bool" in types)
    for group, names in GROUPS.items():
        own = [name for name in names if name in types]
        found += [group] if len(own) == len(names) else own
    return " ".join(found)


__all__ = ["GROUPS", "TEXTS", "TYPES", "checked", "texts_of", "written"]
