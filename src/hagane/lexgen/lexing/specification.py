"""Specifications of lexers: rules, start conditions, code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hagane.lexgen.expressions.syntax import Pattern

INITIAL = "INITIAL"
ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Action:
    """The effects of a match, in this order.

    ``code`` (Python source) or ``function`` (of the scanner and the text) runs first, if there is
    one, and returns the kind; ``begin``, ``push`` and ``pop``
    change the start condition; ``kind`` is otherwise the kind of the token, None to skip.
    """

    kind: str | None = None
    begin: str | None = None
    push: str | None = None
    pop: bool = False
    code: str | None = None
    function: Callable[..., str | None] | None = None

    @property
    def moves(self) -> bool:
        """Whether the start condition may change."""
        return bool(self.begin or self.push or self.pop or self.code or self.function)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern with the action of its matches.

    ``conditions`` are the start conditions in which the rule is active; none means every inclusive
    one, and ``("*",)`` all. ``where`` says where the rule stands (``file:line:column``).
    """

    pattern: Pattern
    action: Action
    conditions: tuple[str, ...] = ()
    where: str = ""

    @property
    def label(self) -> str:
        """How messages call the rule."""
        code = self.action.code or self.action.function
        name = self.action.kind or ("with code" if code else "skipped")
        place = f" ({self.where})" if self.where else ""
        return f"{name} '{self.pattern.source}'{place}"


@dataclass(frozen=True, slots=True)
class Specification:
    """A whole lexer.

    ``conditions`` maps each start condition to whether it is exclusive; ``INITIAL`` is always there
    and inclusive. ``at_end`` gives the ``<<EOF>>`` action of a start condition.
    """

    rules: tuple[Rule, ...]
    conditions: Mapping[str, bool] = field(default_factory=lambda: {INITIAL: False})
    at_end: Mapping[str, Action] = field(default_factory=dict)
    header: str = ""
    footer: str = ""
    source: str = "<rules>"

    def active(self) -> list[list[int]]:
        """Return the numbers of the rules that are active in each start condition."""
        found: list[list[int]] = []
        for name, exclusive in self.conditions.items():
            found.append(
                [
                    number
                    for number, rule in enumerate(self.rules)
                    if name in rule.conditions
                    or rule.conditions == ("*",)
                    or (not rule.conditions and not exclusive)
                ]
            )
        return found

    def kinds(self) -> tuple[str, ...]:
        """Return all kinds of tokens, the kind of errors first, then in the order of the rules."""
        names = [rule.action.kind for rule in self.rules]
        names += [action.kind for action in self.at_end.values()]
        return (ERROR, *dict.fromkeys(name for name in names if name and name != ERROR))
