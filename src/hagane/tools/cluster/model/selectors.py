"""Selectors over labels: the predicates that all placement rules are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"[+-]?[0-9]+")


def _integer(text: str) -> int | None:
    """Return a label's value as Go's ``ParseInt`` reads it, which knows no underscores."""
    value = int(text) if _DECIMAL.fullmatch(text) and len(text) < 64 else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label: ``key operator values``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet the condition.

        ``NotIn`` and ``DoesNotExist`` hold for a label that is absent; ``Gt`` and ``Lt`` compare
        decimal integers of 64 bits and hold for nothing else.
        """
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        left, right = _integer(value or ""), _integer(self.values[0])
        if left is None or right is None:
            return False
        return left > right if self.operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class Selector:
    """All of its requirements; with none of them it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a node selector: labels and fields, all of which must hold."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Labels) -> bool:
        """Return whether a node meets the term; an empty term matches no node."""
        if not self.expressions and not self.fields:
            return False
        return all(r.matches(labels) for r in self.expressions) and all(
            r.matches({"metadata.name": name}) for r in self.fields
        )


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on a node that keeps pods away unless they tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that a pod puts up with."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Return whether the toleration covers a taint.

        An empty effect covers every effect, an empty key with ``Exists`` every key; ``Gt`` and
        ``Lt`` compare integers without leading zeros (Kubernetes 1.35, feature
        TaintTolerationComparisonOperators): ``Gt`` covers taints above the toleration's value.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "Gt" | "Lt":
                if not (_INTEGER.fullmatch(taint.value) and _INTEGER.fullmatch(self.value)):
                    return False
                left, right = int(taint.value), int(self.value)
                return left > right if self.operator == "Gt" else left < right
        return bool(self.key) and self.value == taint.value


def untolerated(
    taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], effects: tuple[str, ...]
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None
