"""Selectors of labels and fields, as clients write them in queries.

Grammar: the Kubernetes documentation, "Labels and Selectors" and "Field Selectors".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from hagane.tools.cluster.model.selectors import Requirement

Chosen = Callable[[Mapping[str, Any]], bool]

_KEY = r"(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*")
_ORDER = re.compile(rf"\s*({_KEY})\s*([<>])\s*([+-]?[0-9]+)\s*")
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*")
_FIELD = re.compile(r"\s*([A-Za-z][A-Za-z.]*)\s*(==|=|!=)\s*([^=!,]*?)\s*")
# Fields that a selector may name, beside those of all objects.
_FIELDS = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "jobs": ("status.successful",),
}


def is_label(key: object, value: object) -> bool:
    """Return whether a name and a value may be a label."""
    return (
        isinstance(key, str)
        and isinstance(value, str)
        and len(key.rpartition("/")[2]) <= 63
        and len(value) <= 63
        and re.fullmatch(_KEY, key) is not None
        and re.fullmatch(_VALUE, value) is not None
    )


class BadSelector(Exception):
    """A selector that does not parse, or a field that has none."""


def chooser(resource: str, namespace: str, query: Mapping[str, str]) -> Chosen:
    """Return a predicate for a namespace and the selectors of a query.

    Raises:
        BadSelector: One of them does not parse.
    """
    tests = [
        *_labels(query.get("labelSelector", "")),
        *_fields(resource, query.get("fieldSelector", "")),
    ]

    def chosen(value: Mapping[str, Any]) -> bool:
        if namespace and value["metadata"].get("namespace") != namespace:
            return False
        return all(test(value) for test in tests)

    return chosen


def _labels(text: str) -> list[Chosen]:
    # Commas inside parentheses part values.
    parts = re.split(r",(?![^()]*\))", text) if text.strip() else []
    return [_label(part) for part in parts]


def _label(text: str) -> Chosen:
    found = _EQUALITY.fullmatch(text)
    if found:
        key, sign, wanted = found.groups()
        return _holds(key, (wanted,), sign != "!=")
    found = _SET.fullmatch(text)
    if found:
        key, sign, values = found.groups()
        several = tuple(value.strip() for value in values.split(","))
        if not all(re.fullmatch(_VALUE, value) for value in several):
            raise BadSelector(f"unable to parse requirement: invalid value in {text.strip()!r}")
        return _holds(key, several, sign == "in")
    found = _ORDER.fullmatch(text)
    if found:
        key, sign, number = found.groups()
        test = Requirement(key, "Gt" if sign == ">" else "Lt", (number,))
        return lambda value: test.matches(_labels_of(value))
    found = _EXISTS.fullmatch(text)
    if found:
        absent, key = found.groups()
        return lambda value: (key in _labels_of(value)) != bool(absent)
    raise BadSelector(
        f"unable to parse requirement: {text.strip()!r}: expected KEY=VALUE, KEY!=VALUE, "
        "KEY in (A, B), KEY notin (A, B), KEY>NUMBER, KEY<NUMBER, KEY or !KEY"
    )


def _holds(key: str, wanted: tuple[str, ...], equal: bool) -> Chosen:
    # An object without the label is not equal, and not in any set.
    return lambda value: (_labels_of(value).get(key) in wanted) == equal


def _labels_of(value: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = value["metadata"].get("labels") or {}
    return labels


def _fields(resource: str, text: str) -> list[Chosen]:
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource, ()))
    tests: list[Chosen] = []
    for part in text.split(",") if text.strip() else ():
        found = _FIELD.fullmatch(part)
        if not found:
            raise BadSelector(
                f"invalid selector: {part.strip()!r}: expected FIELD=VALUE or FIELD!=VALUE"
            )
        name, sign, wanted = found.groups()
        if name not in known:
            raise BadSelector(
                f"field label not supported: {name}: expected one of {', '.join(known)}"
            )
        tests.append(_field(tuple(name.split(".")), wanted, sign != "!="))
    return tests


def _field(steps: tuple[str, ...], wanted: str, equal: bool) -> Chosen:
    def test(value: Mapping[str, Any]) -> bool:
        here: Any = value
        for step in steps:
            here = (here or {}).get(step)
        text = str(here).lower() if isinstance(here, bool) else str(here or "")
        # A flag that is absent is false.
        return (text == wanted or (not text and wanted == "false")) == equal

    return test
