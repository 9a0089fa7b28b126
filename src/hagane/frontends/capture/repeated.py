"""Repeated calls: whether anything that attributes keep changes the result of a later call."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from hagane.frontends.capture.attempt import Attempt
from hagane.frontends.capture.forms import Forms
from hagane.frontends.capture.interface.given import given
from hagane.frontends.capture.interface.outputs import outputs
from hagane.frontends.capture.interface.state import Attribute
from hagane.frontends.capture.interface.structure import Example
from hagane.frontends.python.enter.arguments import call_with
from hagane.frontends.python.enter.check import DeepRecursion
from hagane.frontends.python.enter.roots import root_of
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.type_text import DTYPES
from hagane.frontends.python.values.values import (
    Device,
    DType,
    Host,
    Library,
    ListRef,
    Tensor,
    Value,
)

Sizes = Mapping[str, int]
Key = tuple[int, str]

_SCALES = (1, 8, 32, 64)  # networks halve pictures up to six times
_SIZES = re.compile(r"\[[^\[\]]*\]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TYPES = frozenset((*DTYPES, "int", "float", "bool", "str"))


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of known sizes.

    Attributes:
        result: The structure of its result, and the forms of the tensors in it.
        values: The forms of attributes after it.
        bare: The attributes that no input's content decides.
    """

    result: tuple[str, tuple[int, ...]]
    values: Mapping[Key, Any]
    bare: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Settled:
    """Attributes whose new values no earlier call decides.

    Attributes:
        caches: Those that sizes alone decide.
        others: Those that inputs decide.
    """

    caches: frozenset[Key]
    others: frozenset[Key]


class Repeated:
    """Calls in a row, compared with calls of an object as it is.

    Args:
        attempt: Makes an interpreter that has seen no call.
        still: Whether PyTorch records no gradients.
        attributes: The attributes that a call changes.
        found: The function, method or model.
        types: Types of its arguments, by position.
        named: The same by name.
    """

    def __init__(
        self,
        attempt: Callable[[], Attempt],
        still: bool,
        attributes: Sequence[Attribute],
        found: Any,
        types: Sequence[Any],
        named: Mapping[str, Any],
    ):
        self._attempt, self._still, self._found = attempt, still, found
        self._types, self._named, self._attributes = types, named, attributes
        self._known: dict[Any, int] = {}

    def settled(self) -> Settled | None:
        """Return the attributes whose values no earlier call decides; None if one decides a result.

        Where a result depends on an earlier call, its form is another one than without. The
        sizes are numbers: the same ones twice, each size alone changed, and all of them smaller.
        """
        texts = (_text(value) for value in (*self._types, *self._named.values()))
        symbols = sorted(set().union(*map(_names_in, texts)))
        for scale in _SCALES:
            first = {name: scale * (17 + place) for place, name in enumerate(symbols)}
            alone = self._calls(first)
            if alone is None:
                continue
            more = scale * (6 + len(symbols))
            others: list[Sizes] = [{**first, name: first[name] + more} for name in symbols]
            if symbols:
                others.append({name: scale * (9 + place) for place, name in enumerate(symbols)})
            fresh = [self._calls(sizes) for sizes in others]
            row = self._calls(first, first, *others)
            wanted = [alone[0], *(call for calls in (alone, *fresh) for call in calls or ())]
            if row is None or [call.result for call in row] != [call.result for call in wanted]:
                return None
            same = {
                key
                for key in wanted[0].values
                if all(a.values[key] == b.values[key] for a, b in zip(row, wanted, strict=True))
            }
            caches = same.intersection(*(call.bare for call in wanted))
            return Settled(frozenset(caches), frozenset(same - caches))
        return None

    def _calls(self, *sizes: Sizes) -> list[_Call] | None:
        """Return calls in a row, one for each of some sizes; None if one of them is refused."""
        attempt = self._attempt()
        attempt.graph.still = self._still
        core, graph = attempt.core, attempt.graph.root.graph
        made = []
        try:
            with DeepRecursion():
                attempt.state.seed()
                path = core.knowledge.path
                for place, known in enumerate(sizes):
                    core.knowledge.path = path  # no error of an earlier call decides
                    types = [_with_sizes(value, known) for value in self._types]
                    named = {k: _with_sizes(value, known) for k, value in self._named.items()}
                    before = {*graph.inputs}
                    kinds: dict[str, str] = {}
                    root = root_of(core, self._found, types, named)
                    values = given(core, kinds, root, types, named, attempt.names)
                    by_name = {*named}
                    call_with(core, root.value, root.function, root.bound, values, kinds, by_name)
                    report = core.collector.report
                    if report.errors or report.unknown or not report.checked:
                        return None
                    own = {v: str(v.name) for v in graph.inputs if v not in before}
                    made.append(self._call(attempt, own, f"@{place}"))
        except CheckError:
            return None
        return made

    def _call(self, attempt: Attempt, inputs: Mapping[ir.Value, str], suffix: str) -> _Call:
        core, graph = attempt.core, attempt.graph.root.graph
        objects = attempt.graph.objects()
        forms = Forms(inputs, objects, self._known)
        count = len(graph.outputs)
        structure = outputs(core, core.collector.report.result, "", suffix=suffix)
        numbers = tuple(map(forms.of, graph.outputs[count:]))
        values, bare = {}, set()
        for attribute in self._attributes:
            owner = core.lift(attribute.owner)
            now = core.own_attribute(owner, attribute.name)
            key = id(attribute.owner), attribute.name
            if attribute.is_hooks:  # what they do is in the result
                values[key] = len(now) if isinstance(now, tuple) else 0
                bare.add(key)
                continue
            values[key] = self._form(attempt, now, forms)
            if self._is_bare(attempt, now, forms):
                bare.add(key)
        told = repr(structure).replace(f"{suffix}'", "'")
        return _Call((told, numbers), values, frozenset(bare))

    def _form(self, attempt: Attempt, value: Value, forms: Forms) -> Any:
        """Return all that a value is computed from."""
        value = attempt.core.settle(value)
        if isinstance(value, Tensor):
            real = attempt.graph.object_of(value)
            if real is not None:
                return "array", id(real)
            return forms.of(attempt.graph.visible(value.value, attempt.graph.root))
        if isinstance(value, ListRef) and isinstance(attempt.core.heap[value], tuple):
            return "list", *(self._form(attempt, v, forms) for v in attempt.core.heap[value])
        if isinstance(value, tuple):
            return tuple(self._form(attempt, part, forms) for part in value)
        return type(value).__name__, value

    def _is_bare(self, attempt: Attempt, value: Value, forms: Forms) -> bool:
        """Whether no input's content decides a value."""
        value = attempt.core.settle(value)
        if isinstance(value, Tensor):
            inner = attempt.graph.visible(value.value, attempt.graph.root)
            return attempt.graph.is_kept(value) or forms.of(inner) not in forms.reached
        if isinstance(value, ListRef) and isinstance(attempt.core.heap[value], tuple):
            value = attempt.core.heap[value]
        if isinstance(value, tuple):
            return all(self._is_bare(attempt, part, forms) for part in value)
        plain = bool | int | float | str | DType | Device | Host | Library
        return value is None or isinstance(value, plain)


def _text(value: Any) -> str:
    """Return the type of an argument as text; empty for a known value."""
    return value if isinstance(value, str) else value.text if isinstance(value, Example) else ""


def _with_sizes(value: Any, sizes: Sizes) -> Any:
    """Return the type of an argument with sizes that are known."""
    text = _text(value)
    if not text:
        return value
    made = _SIZES.sub(
        lambda inside: _NAME.sub(lambda name: str(sizes.get(name[0], name[0])), inside[0]), text
    )
    return made if isinstance(value, str) else replace(value, text=made)


def _names_in(text: str) -> set[str]:
    """Return the names of sizes in the text of a type."""
    return {name for inside in _SIZES.findall(text) for name in _NAME.findall(inside)} - _TYPES


__all__ = ["Repeated", "Settled"]
