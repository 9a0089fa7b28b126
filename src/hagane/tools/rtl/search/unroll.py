"""A circuit over several cycles, as terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hagane.symbolic.interpret import Substitution
from hagane.symbolic.term import Term, bits, const, variable

if TYPE_CHECKING:
    from hagane.tools.rtl.search.search import Search


class Unrolling:
    """The circuit over several cycles; the state of the first one is given or left open.

    Asynchronous resets rest.
    """

    def __init__(self, search: Search, start: Mapping[str, int] | None):
        self._model = search.model
        self._cycles: list[Substitution] = []
        self._state: dict[str, Term] = {}
        for name, term in self._model.state.items():
            sort = term.sort
            self._state[name] = (
                variable(f"{name}#open", sort) if start is None else const(start[name], sort)
            )

    def at(self, cycle: int, term: Term) -> Term:
        """Return ``term`` as it is in a cycle, counted from 0."""
        while len(self._cycles) <= cycle:
            self._extend()
        return self._cycles[cycle](term)

    def _extend(self) -> None:
        number = len(self._cycles)
        if number:
            last = self._cycles[-1]
            self._state = {name: last(term) for name, term in self._model.state.items()}
        replaced: dict[Term, Term] = {}
        for name, term in self._model.state.items():
            replaced[variable(name, term.sort)] = self._state[name]
        resets = {reset.name: reset.active for reset in self._model.resets if reset.asynchronous}
        for item in self._model.inputs:
            plain = variable(item.name, bits(item.width))
            if item.name in resets:
                replaced[plain] = const(1 - resets[item.name], plain.sort)
            else:
                replaced[plain] = variable(f"{item.name}#{number}", plain.sort)
        self._cycles.append(Substitution(replaced))
