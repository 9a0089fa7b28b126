"""Attributes that some paths set and others do not, where the data decide which path was taken."""

from __future__ import annotations

from typing import NoReturn

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.heap import unset_of
from hagane.frontends.python.values.memory import UNSET
from hagane.frontends.python.values.objects import (
    Class,
    Function,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Absent,
    Choice,
    Unknown,
    Value,
    may_be_absent,
)
from hagane.symbolic.logic import choose
from hagane.symbolic.term import FALSE, Term, variables_of


class HalfSet(Core):
    """Says what an object has on the paths that did not set its attribute.

    This matters where a graph is made: its class may have the name, and the program may ask
    whether the attribute is there. Code that just reads it raises an error on those paths, and
    the graph returns anything.
    """

    def set_own(self, owner: Instance | Class, name: str, value: Value) -> None:
        """Set an attribute that the object itself holds."""
        if self.emit.builds and isinstance(owner, Class):
            self._refuse_later(owner, name)
        self.owned(owner)[name] = value
        self.heap.changed(owner)

    def owned(self, owner: Instance | Class) -> dict[str, Value]:
        """Return the attributes that an object itself holds, to be changed."""
        if self.emit.builds:
            self.heap.owners[owner.key] = owner
        held: dict[str, Value] = self.heap[owner]
        return held

    def _refuse_later(self, cls: Class, name: str) -> None:
        """Refuse to change what a class gives objects of which some paths alone set the name."""
        for key, names in self.heap.partly.items():
            owner = self.heap.owners.get(key)
            of = owner.cls if isinstance(owner, Instance) else owner
            if name not in names or key == cls.key or not isinstance(of, Class):
                continue
            if cls in self.resolution_order(of):
                raise CheckError(
                    "capture",
                    f"'{name}' of the class {cls.name} is set here, and some paths alone set it of "
                    f"{self.show(owner)}: set it before the paths part",
                )

    def names_to_set(self, function: Function) -> dict[str, Value]:
        """Return the attributes of a function, to be changed."""
        names = self.names_of_function(function)
        if self.emit.builds:
            key = self.key_of_names(function)
            self.heap.owners[key] = function
            self.heap.originals.change(key)
        return names

    def absent_attribute(self, owner: Value, key: int, name: str) -> Value:
        """Return what an object gives for a name where it has no attribute of its own."""
        found: Value = MISSING
        if isinstance(owner, Instance) and isinstance(owner.cls, Class):
            found = self.find_in_class(owner.cls, name)
            if isinstance(found, Function):
                return self.bind(found, owner, owner.cls)
        elif isinstance(owner, Class):
            found = self.find_in_class(owner, name, after=owner)
        computed = isinstance(found, Wrapped) or self.descriptor(found, "__get__") is not MISSING
        if found is not MISSING and not computed:
            return found
        made = self._absents.get((key, name))
        if made is None:
            told = f"the attribute '{name}' is set on some paths alone, as the data decide"
            made = self._absents[key, name] = Absent(told)
        return made

    def where_set(self, found: Value, owner: Value, name: str) -> Value:
        """Return an attribute on the paths that set it; others raise an error."""
        text = f"{self.show(owner)} has no attribute '{name}'"
        self.fail_where(self.as_truth(self._is_absent(found)), AttributeError, text)
        return Unknown(text, told=True, failed=True) if self.dead else self._present(found)

    def _is_absent(self, found: Value) -> Term:
        if not isinstance(found, Choice):
            return self.as_term(isinstance(found, Absent))
        yes, no = self._is_absent(found.yes), self._is_absent(found.no)
        return choose(found.condition, yes, no)

    def name_where_set(self, found: Value, name: str, frame: int) -> Value:
        """Return a variable that some paths alone have set; the others end by an error.

        A check says nothing where conditions on the way here may rule these out: programs ask for
        one flag twice. A graph is given up where a handler waits for the error.
        """
        what = f"UnboundLocalError: the name '{name}' is not set here yet"
        error, key = CheckError("name", what), (frame, name)
        unset = unset_of(self.heap.contents, key)
        taken = variables_of(self.knowledge.path.decisions)
        if unset is not FALSE and taken.keys().isdisjoint(variables_of([unset])):
            known = self.heap.contents[UNSET]
            self.heap.contents[UNSET] = {one: told for one, told in known.items() if one != key}
            self.fork(unset, lambda: self.end_by(error, what), lambda: None)
        if not self.emit.builds:
            return found
        if any(self.clause_for(each, error) is not None for each in self.handlers):
            return self.lost(f"'{name}', which some paths alone have set, where a handler waits")
        return found

    def _present(self, found: Value) -> Value:
        if not isinstance(found, Choice):
            return MISSING if isinstance(found, Absent) else found
        if not may_be_absent(found):
            return found
        yes, no = self._present(found.yes), self._present(found.no)
        if yes is MISSING or no is MISSING:
            return no if yes is MISSING else yes
        return self.join(found.condition, yes, no)

    def refuse_half_set(self, owner: Instance | Class) -> None:
        """Refuse to show all attributes of an object where some paths alone set one of them."""
        if self.heap.partly.get(owner.key):
            _refuse(sorted(self.heap.partly[owner.key])[0])


def _refuse(name: str) -> NoReturn:
    raise CheckError(
        "capture",
        f"all attributes of an object are asked for, and '{name}' was set on some paths alone, as "
        "the data decide; set it on all of them, to None where it has no value",
    )


__all__ = ["HalfSet"]
