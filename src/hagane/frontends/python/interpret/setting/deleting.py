"""Attributes that a program deletes."""

from __future__ import annotations

from hagane.frontends.python.interpret.setting.half_set import HalfSet
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Class,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Value,
    may_be_absent,
)


class Deleting(HalfSet):
    """Deletes attributes of objects."""

    def delete_attribute(self, value: Value, name: str) -> None:
        """Do ``del value.name``."""
        if not isinstance(value, Instance):
            self.lost("an attribute that is deleted")
            return
        if isinstance(value.cls, Class):
            own = self.find_in_class(value.cls, "__delattr__")
            if own is not MISSING:
                self.call(self.bind(own, value, value.cls), [name], {})
                return
        self.delete_own(value, name)

    def delete_own(self, value: Instance, name: str) -> None:
        """Do ``del value.name`` as ``object.__delattr__`` does."""
        found = self.find_in_class(value.cls, name) if isinstance(value.cls, Class) else MISSING
        if isinstance(found, Wrapped) and found.kind == "property":
            deleter = found.keywords.get("deleter")
            if deleter is None:
                told = f"property '{name}' of '{value.cls.name}' object has no deleter"
                raise CheckError("attribute", told)
            self.call(deleter, [value], {})
            return
        deleter = self.descriptor(found, "__delete__")
        if deleter is not MISSING:
            self.call(deleter, [found, value], {})
            return
        own = self.own_attribute(value, name)
        if own is MISSING:
            raise CheckError("attribute", f"{self.show(value)} has no attribute '{name}'")
        if may_be_absent(own):
            self.where_set(own, value, name)
        if self.dead:
            return
        if value.host is None or self.host_attribute(value.host, name) is MISSING:
            del self.owned(value)[name]
        else:
            self.owned(value)[name] = MISSING
        self.heap.changed(value)


__all__ = ["Deleting"]
