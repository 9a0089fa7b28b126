"""Whether containers have an item: ``in``, of values, names of sizes and what the data decide."""

from __future__ import annotations

import ast
import operator
import os
from collections.abc import Sequence
from functools import partial

from hagane.frontends.python.interpret.arithmetic import apply_plain
from hagane.frontends.python.interpret.reading.enumerations import Enumerations
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    is_enumeration,
)
from hagane.frontends.python.values.values import (
    MISSING,
    DictRef,
    Host,
    ListRef,
    Many,
    Range,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
)
from hagane.symbolic.logic import both, either
from hagane.symbolic.term import FALSE, TRUE, Term


class Containing(Enumerations):
    """Tells whether a container has an item."""

    def _among(self, item: Value, tensor: Tensor) -> Value:
        """Return whether an element of a tensor equals a value."""
        same = self.compare(ast.Eq, tensor, item)
        return self.call(self.attribute(same, "any"), [], {}) if isinstance(same, Tensor) else same

    def contained(self, item: Value, container: Value) -> Value:
        """Return whether a container has an item."""
        if isinstance(container, str) and isinstance(item, str):
            return item in container
        if isinstance(container, Tensor):
            return self.as_truth(self.as_term(self.truth(self._among(item, container))))
        if isinstance(container, DictRef | ListRef | SetRef):
            content = self.heap[container]
        elif isinstance(container, Stream | Range):
            return self._gives(container, item)
        elif isinstance(container, Class) and is_enumeration(container):
            content = tuple(self.items_of_class(container))
        elif isinstance(container, Instance):
            method = self.method_of(container, "__contains__")
            if method is not MISSING:
                return self.call(method, [item], {})
            content = self.sequence_or_keys(container)
        elif isinstance(container, Host) and is_plain(item):
            lacks = isinstance(container.object, os._Environ) and item not in container.object
            if lacks and not self.emit.builds:
                return Truth(self.unknown_truth())  # where the program runs, it may be
            question = partial(apply_plain, operator.contains, container.object, item)
            answer = question()
            self.observer.asked(container.object, question, answer)
            return answer
        else:
            content = tuple(container) if isinstance(container, frozenset) else container
        if isinstance(item, Unknown) or not isinstance(content, dict | tuple | range | list):
            return Truth(self.unknown_truth())
        if isinstance(content, dict):
            key = item if self.is_by_identity(item) else self.key_in(content, item)
            if key is not MISSING:
                return key in content
        if isinstance(container, SetRef) and self.is_by_identity(item):
            return any(c is item for c in content)
        if self.equals_itself_alone(item):
            if any(c is item for c in content):
                return True
            content = [c for c in content if not self.equals_itself_alone(c)]
        conditions: list[Term] = []
        for each in content:
            same = TRUE if each is item else self.as_term(self.truth(self._equals(each, item)))
            conditions.append(same)
            if same is TRUE:
                break
        return self.as_truth(either(*conditions)) if conditions else False

    def _equals(self, each: Value, item: Value) -> Value:
        """Return whether an item of a container is what is looked for; the former is asked."""
        one, other = (item, each) if isinstance(item, Tensor) else (each, item)
        return self.compare(ast.Eq, one, other)

    def _gives(self, source: Stream | Range, item: Value) -> Value:
        """Return whether an iterator, which is read up to that, or a range gives an item."""
        if isinstance(source, Range) and isinstance(source.step, int):
            return self._is_in_range(source, source.step, item)
        items = self.sequence(source)
        if isinstance(items, Many):
            self.put_back(source, None)
            return self.compare(ast.In, item, self.new_list(items))
        answers = [self.as_term(self.truth(self.compare(ast.Eq, one, item))) for one in items]
        self.stop_at(source, items, answers, TRUE)
        return self.as_truth(either(*answers)) if answers else False

    def _is_in_range(self, source: Range, step: int, item: Value) -> Value:
        first, last = (source.start, source.stop) if step > 0 else (source.stop, source.start)
        reached, left = (ast.LtE, ast.Lt) if step > 0 else (ast.Lt, ast.LtE)
        answers = [self.compare(reached, first, item), self.compare(left, item, last)]
        if abs(step) > 1:
            behind = self.binary(ast.Sub, item, source.start)
            answers.append(self.compare(ast.Eq, self.binary(ast.Mod, behind, abs(step)), 0))
        return self.as_truth(both(*(self.as_term(self.truth(answer)) for answer in answers)))

    def stop_at(
        self, source: Value, items: list[Value], answers: Sequence[Term], last: Term
    ) -> None:
        """Put back the items behind the first answer that ends the reading of an iterator."""
        going = FALSE if last is TRUE else TRUE
        place = next((k for k, answer in enumerate(answers) if answer is not going), len(items))
        if place == len(items) or answers[place] is last:
            self.put_back(source, items[place + 1 :])
        else:
            self.put_back(source, None)
