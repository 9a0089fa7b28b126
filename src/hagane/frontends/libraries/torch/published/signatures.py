"""Calls that PyTorch's parser of arguments refuses: those that fit none of a function's signatures.

The signatures lie in ``signatures.txt``, which ``stubs.py`` writes: a line for each function, with
``name:kinds`` for each parameter, ``=`` after those with a default, ``*`` before those that are
given by name alone, and ``;`` between overloads. A method that has the function's without
the first parameter is left out. Kinds: ``T`` tensor, ``L`` tensors, ``N`` number, ``i`` integer,
``f`` float, ``b`` bool, ``I`` integers, ``d`` element type, ``s`` text, ``?`` None, ``*`` anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hagane.errors import HaganeError
from hagane.frontends.libraries.torch.operands import element_type
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.symbolic import Expr

METHODS = "torch.Tensor."
PLAIN = "plain"  # in place of signatures: a method in plain Python, whose function is none
_TOLD = {
    "T": "a tensor", "L": "tensors", "N": "a number", "i": "an integer", "f": "a float",
    "b": "a bool", "I": "integers", "d": "a torch.dtype", "s": "a text", "?": "None",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a signature: its name, its kinds, and how it may be given."""

    name: str
    kinds: str
    has_default: bool
    by_name: bool
    is_several: bool


@dataclass(frozen=True, slots=True)
class _Misfit:
    """Why a call does not fit: after how many fitting arguments, and the message."""

    after: int
    message: str


@contextmanager
def fitting(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Iterator[None]:
    """Refuse a call inside the block that fits no signature, unless it was refused already."""
    try:
        yield
    except HaganeError:
        raise
    except Exception:
        _refuse_misfit(core, name, arguments, keywords)
        raise
    _refuse_misfit(core, name, arguments, keywords)


def _refuse_misfit(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> None:
    """Refuse a call that fits none of the signatures of a function of PyTorch's own."""
    overloads = table().get(name)
    if overloads is None:
        return
    if name.startswith(METHODS):
        arguments = arguments[1:]
    found: list[_Misfit] = []
    theirs: dict[str, str] = {}
    if core.emit.builds:  # a graph's meaning is asked for by the names that the tables have
        theirs = {own: told for told, own in TORCH.parameters.get(name, {}).items()}
    for overload in overloads:
        misfit = _misfit(core, overload, arguments, keywords, theirs)
        if misfit is None:
            return
        found.append(misfit)
    worst = max(found, key=lambda misfit: misfit.after)
    short = ", ".join(_shown(parameter) for parameter in overloads[found.index(worst)])
    raise CheckError("call", f"{name}({short}): {worst.message}")


def _shown(parameter: Parameter) -> str:
    stars = "*" * parameter.is_several
    return f"{stars}{parameter.name}{'=…' * parameter.has_default}"


def _misfit(
    core: Core,
    overload: Sequence[Parameter],
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    theirs: Mapping[str, str],
) -> _Misfit | None:
    """Return why a call does not fit one signature; None if it may."""
    placed = [p for p in overload if not p.by_name]
    given: dict[str, Value] = {}
    for place, value in enumerate(arguments):
        if place < len(placed) and not placed[place].is_several:
            given[placed[place].name] = value
        elif placed and placed[-1].is_several:
            if not _fits(core, value, placed[-1].kinds):
                return _Misfit(place, _told(core, placed[-1], value))
        else:
            counted = f"{len(placed)} argument" + "s" * (len(placed) != 1)
            return _Misfit(place, f"expected at most {counted} by place, got {len(arguments)}")
    named = {p.name: p for p in overload}
    for key, value in keywords.items():
        own = key if key in named else theirs.get(key, TORCH.synonyms.get(key, key))
        own = "input" if key == "self" and "input" in named else own
        if own not in named or own in given:
            again = "got several values for" if own in given else "has no"
            return _Misfit(len(given), f"{again} argument '{key}'")
        given[own] = value
    for after, parameter in enumerate(p for p in overload if not p.is_several):
        if parameter.name not in given:
            if not parameter.has_default:
                return _Misfit(after, f"argument '{parameter.name}' is missing")
        elif not _fits(core, given[parameter.name], parameter.kinds):
            return _Misfit(after, _told(core, parameter, given[parameter.name]))
    return None


def _told(core: Core, parameter: Parameter, value: Value) -> str:
    kinds = [_TOLD[kind] for kind in parameter.kinds if kind != "?"]
    kinds += ["None"] * ("?" in parameter.kinds)
    expected = ", ".join(kinds[:-1]) + " or " * (len(kinds) > 1) + kinds[-1]
    return f"expected {expected} as '{parameter.name}', got {core.show(core.wrap(value))}"


def _fits(core: Core, value: Value, kinds: str) -> bool:
    """Whether a value may be of one of the kinds; what is not known may be of any."""
    if "*" in kinds:
        return True
    possible = _possible(core, value)
    return "*" in possible or not possible.isdisjoint(kinds)


def _possible(core: Core, value: Value) -> frozenset[str]:
    """Return the kinds of arguments that a value fits."""
    if value is None:
        return frozenset("?")
    if isinstance(value, Tensor):
        if value.kind != TORCH.tensor:
            return frozenset("*")
        sizes = value.shape
        may_be_one = sizes is None or all(not isinstance(s, int) or s == 1 for s in sizes)
        return frozenset("TNifb" if may_be_one else "T")
    if isinstance(value, bool | Truth):
        return frozenset("bNif")
    if isinstance(value, int | Expr):
        return frozenset("iNf")
    if isinstance(value, Real):
        return frozenset("fNi" if int in value.also else "fN")
    if isinstance(value, float):
        return frozenset("fN")
    if isinstance(value, complex):
        return frozenset("N")
    if isinstance(value, str):
        return frozenset("s")
    if isinstance(value, list | tuple):
        return _of_several(core, value)
    return frozenset("d*" if element_type(value) is None else "d")


def _of_several(core: Core, values: Sequence[Value]) -> frozenset[str]:
    kinds = [_possible(core, value) for value in values]
    tensors = all("T" in kind or "*" in kind for kind in kinds)
    integers = all("i" in kind or "*" in kind for kind in kinds)
    return frozenset("L" * tensors + "I" * integers)


@cache
def table() -> dict[str, list[list[Parameter]]]:
    """Return the signatures of each function, those of methods without the receiver."""
    text = files(__package__).joinpath("signatures.txt").read_text(encoding="utf-8")
    found, plain = {}, set[str]()
    for line in text.splitlines():
        name, _, told = line.partition(":")
        if told.strip() == PLAIN:
            plain.add(name)
        else:
            found[name] = [parameters_of(overload) for overload in told.split(";")]
    for method in TORCH.methods[TORCH.tensor]:
        function = found.get(f"{TORCH.root}.{method}")
        if function is not None and METHODS + method not in plain:
            found.setdefault(METHODS + method, as_method(function))
    return found


def as_method(overloads: Sequence[Sequence[Parameter]]) -> list[list[Parameter]]:
    """Return the signatures of a function as those of the method of its first parameter."""
    found: list[list[Parameter]] = []
    for overload in overloads:
        left = [p for p in overload[1:] if p.name != "out"]
        if left not in found:
            found.append(left)
    return found


def parameters_of(text: str) -> list[Parameter]:
    """Return the parameters that one overload of the table tells."""
    found, by_name = [], False
    for part in text.split():
        if part == "*":
            by_name = True
            continue
        name, _, kinds = part.rpartition(":")
        several = name.startswith("*")
        found.append(
            Parameter(name.lstrip("*"), kinds.rstrip("="), kinds.endswith("="), by_name, several)
        )
        by_name = by_name or several
    return found


__all__ = ["METHODS", "Parameter", "as_method", "fitting", "parameters_of", "table"]
