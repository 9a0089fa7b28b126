"""Functions whose results functools keeps (``lru_cache``, ``cache``)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hagane.frontends.python.standard.real import RealObjects
from hagane.frontends.python.values.late import Noted
from hagane.frontends.python.values.objects import Instance, Wrapped
from hagane.frontends.python.values.values import (
    MISSING,
    Device,
    DictRef,
    DType,
    ListRef,
    SetRef,
    Tensor,
    Value,
)
from hagane.symbolic.path import PathCondition


@dataclass(frozen=True)
class Kept:
    """A result.

    Attributes:
        value: The result.
        path: The path of the call.
        content: What it held then, where a program may change it.
        noted: What the function has read of older objects, and what it has changed in them.
    """

    value: Value
    path: PathCondition
    content: Any
    noted: Noted

    @property
    def is_pure(self) -> bool:
        """Whether another call would do and return the same, whatever else has happened."""
        return self.content is None and not self.noted.reads and not self.noted.writes


class KeptResults(RealObjects):
    """Calls functions that return again what they returned for the same arguments before."""

    def call_kept(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Return the result of the function behind one that keeps results.

        Arguments have to be known: a tensor is looked up as the object that it is. So has the
        result, but for tensors. On another path than that of the first call it is made anew,
        unless the program has changed it or something that the function reads, or the function
        changes something itself.
        """
        is_local = isinstance(found, Wrapped)
        inner = found.function if is_local else self.lift(found.__wrapped__)
        given = [*arguments, *(part for item in sorted(keywords.items()) for part in item)]
        plain = [self._looked_up(value) for value in given]
        if all(one is not MISSING and isinstance(one, Hashable) for one in plain):
            kept = self.kept.setdefault((found, len(arguments), *plain, *map(type, plain)), [])
            for one in kept:
                if one.is_pure or self._leads_here(one.path):
                    return one.value
            if not any(self._is_changed(one) for one in kept):
                path = self.knowledge.path
                with self.heap.reading() as noted:
                    result = self.call(inner, arguments, keywords)
                if self._is_settled(result):
                    kept.append(Kept(result, path, self._content_of(result), self._seen(noted)))
                    return result
        elif is_local:  # whatever was called before, if it changes nothing
            with self.heap.reading() as noted:
                result = self.call(inner, arguments, keywords)
            if not self._seen(noted).writes:
                return result
        named = inner if is_local else found
        name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
        return self.lost(
            f"'{getattr(named, 'name', name)}' keeps its results (functools.lru_cache), so only "
            "the run knows what it returns; call its __wrapped__, or compute the result before"
        )

    def _call_forget_kept(self, found: Value) -> Value:
        for key in [key for key in self.kept if key[0] is found]:
            del self.kept[key]
        return None

    def _seen(self, noted: Noted) -> Noted:
        """Return what a call has read and changed, but for names that it was the first to read."""
        modules = {module.key for module in self.modules.values()}
        reads = [read for read in noted.reads if read.key not in modules]
        writes = [
            one
            for one in noted.writes
            if one.key not in modules and not self.heap.originals.is_original(one.key, one.name)
        ]
        return Noted(reads, writes)

    def _looked_up(self, value: Value) -> Any:
        """Return what an argument is looked up by, ``MISSING`` where it is not known."""
        known = isinstance(value, DType | Device | Instance)
        return value if known else self.real_of(value)

    def _is_settled(self, value: Value) -> bool:
        """Whether a value is known, or made of tensors and known values."""
        if isinstance(value, tuple):
            return all(map(self._is_settled, value))
        if isinstance(value, ListRef) and isinstance(self.heap[value], tuple):
            return self._is_settled(self.heap[value])
        return isinstance(value, Tensor) or self.real_of(value) is not MISSING

    def _content_of(self, value: Value) -> Any:
        """Return what a value holds that a program may change; None where there is nothing."""
        if isinstance(value, Tensor):
            return ()
        if isinstance(value, ListRef | DictRef | SetRef):
            return self.heap[value]
        if isinstance(value, tuple):
            found = [self._content_of(part) for part in value]
            return None if all(part is None for part in found) else found
        return None

    def _is_changed(self, kept: Kept) -> bool:
        """Whether a call now would do or return something else than the one that was kept."""
        if kept.noted.writes or self.heap.late.have_changed(kept.noted.reads):
            return True
        try:
            return bool(self._content_of(kept.value) != kept.content)
        except KeyError:  # of a path that was left
            return False

    def _leads_here(self, path: PathCondition) -> bool:
        """Whether what a path has made is there on the path that is followed now."""
        now = self.knowledge.path
        return path.scope is now.scope and now.decisions[: len(path.decisions)] == path.decisions
