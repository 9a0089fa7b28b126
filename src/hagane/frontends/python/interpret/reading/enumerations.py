"""Enumerations of the program: how their members are made, found, joined and listed."""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any

from hagane.frontends.python.interpret.objects import Objects
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.members import Member, member_of, plain_kind, shows_plainly
from hagane.frontends.python.values.objects import (
    Class,
    Function,
    Instance,
    Wrapped,
    is_enumeration,
    is_flag,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Value,
    is_plain,
)

_MEMBERS = "_member_map_"
_JOINING = {"__or__": operator.or_, "__and__": operator.and_, "__xor__": operator.xor}


class Enumerations(Objects):
    """Makes the members of enumerations, and finds them."""

    def make_members(self, cls: Class) -> None:
        """Make members of the values in the body of an enumeration."""
        kind, shown = self._kind_of(cls)
        found: dict[str, Value] = {}
        values: list[Value] = []
        ignored = self.heap[cls].pop("_ignore_", ())
        for name, value in list(self.heap[cls].items()):
            if name.startswith("_") or name in _names(ignored) or self._is_described_by(value):
                continue
            value = self._numbered(cls, name, value, values, shown)
            made = self._make_member(cls, name, value, kind, shown)
            if made is MISSING:
                made = self.lost(f"the member {name} of {cls.name}")
            else:
                value = self._value_of(made)
                same = [m for m in found.values() if _equal(self._value_of(m), value)]
                made = same[0] if same else made
                values.append(value)
            self.heap[cls][name] = found[name] = made
        self.heap[cls][_MEMBERS] = self.new_dict(found)

    def _is_described_by(self, value: Value) -> bool:
        """Whether a value in the body of an enumeration is no member: a method, a descriptor."""
        real = value.object if isinstance(value, Host) else None
        if isinstance(real, enum.auto):
            return False
        return (
            isinstance(value, Function | Wrapped)
            or hasattr(real, "__get__")
            or self.descriptor(value, "__get__") is not MISSING
        )

    def _kind_of(self, cls: Class) -> tuple[type | None, bool]:
        """Return the class of plain values that members are, and whether they are shown so."""
        bases = [b.object for b in self.resolution_order(cls) if isinstance(b, Host)]
        bases = [base for base in bases if isinstance(base, type)]
        kind = next((k for base in bases if (k := plain_kind(base)) is not None), None)
        return kind, any(map(shows_plainly, bases))

    def _numbered(
        self, cls: Class, name: str, value: Value, values: list[Value], shown: bool
    ) -> Value:
        """Return the value of a member; that of ``auto()`` follows from those before."""
        if isinstance(value, tuple):
            return tuple(self._numbered(cls, name, item, values, shown) for item in value)
        if not isinstance(value, Host) or not isinstance(value.object, enum.auto):
            return value
        own = self.find_in_class(cls, "_generate_next_value_")
        if own is not MISSING:
            own = own.function if isinstance(own, Wrapped) else own
            return self.call(own, [name, 1, len(values), self.new_list(list(values))], {})
        if shown and self._kind_of(cls)[0] is str:
            return name.lower()
        numbers = [item for item in values if isinstance(item, int)]
        if "flag" in cls.flags:
            return 1 << max(numbers).bit_length() if numbers else 1
        return max(numbers) + 1 if numbers else 1

    def _make_member(
        self, cls: Class, name: str, value: Value, kind: type | None, shown: bool
    ) -> Value:
        """Return a new member, ``MISSING`` where only the run knows it."""
        arguments = value if isinstance(value, tuple) else (value,)
        new = self.find_in_class(cls, "__new__")
        made: Value = Instance(self.heap.new({}), cls)
        if new is not MISSING:
            new = new.function if isinstance(new, Wrapped) else new
            made = self.call(new, [cls, *arguments], {})
        if not isinstance(made, Instance):
            return MISSING
        own = self.heap[made]
        plain = own.pop("<plain>", MISSING)
        if kind is not None and plain is MISSING:
            if not all(map(is_plain, arguments)):
                return MISSING
            plain = kind(*arguments)
        if kind is not None and not isinstance(value, tuple):
            value = plain
        value = own.get("_value_", value)
        own.update({"_name_": name, "name": name, "_value_": value})
        init = self.find_in_class(cls, "__init__")
        if init is not MISSING:
            self.call(init, [made, *arguments], {})
        own = self.heap[made]  # calls may have put another in its place
        own["value"] = own["_value_"]
        if kind is None:
            return made
        return member_of(kind, plain, made, None if shown else f"{cls.name}.{name}")

    def _value_of(self, member: Value) -> Value:
        inner = member.instance if isinstance(member, Member) else member
        return self.attribute(inner, "_value_") if isinstance(inner, Instance) else inner

    def new_plain(self, kind: type, cls: Class, arguments: Sequence[Value]) -> Value:
        """Return what ``int.__new__(cls, 3)`` gives in the ``__new__`` of an enumeration."""
        made = Instance(self.heap.new({}), cls)
        if kind is not object:
            if not all(map(is_plain, arguments)):
                return self.lost(f"an object of {cls.name} whose {kind.__name__} is not known")
            self.heap[made]["<plain>"] = kind(*arguments)
        return made

    def new_enumeration(self, base: type, name: Value, members: Value) -> Value:
        """Return what ``Enum("Name", members)`` gives."""
        known = self.mapping(members)
        if known is None and isinstance(members, str):
            members = tuple(members.replace(",", " ").split())
        if known is None:
            items = self.sequence(members)
            if isinstance(items, list) and all(isinstance(item, str) for item in items):
                known = {item: Host(enum.auto()) for item in items}
            elif isinstance(items, list) and all(type(item) is tuple for item in items):
                known = dict(items)
        if known is None or not isinstance(name, str):
            return self.lost(f"an enumeration made by {base.__name__}() of parts not known")
        cls = self.made_class(name, [Host(base)], known)
        assert isinstance(cls, Class)
        self.make_members(cls)
        return cls

    # Members that are there.

    def members(self, cls: Class) -> dict[str, Value]:
        """Return the members of an enumeration by their names, other names of one included."""
        if cls.host is not None:
            return {name: self.lift(found) for name, found in cls.host.__members__.items()}
        found = self.find_in_class(cls, _MEMBERS)
        return {} if found is MISSING else dict(self.heap[found])

    def items_of_class(self, cls: Class) -> list[Value]:
        """Return the members of an enumeration, each once; of flags, those of one bit."""
        found: list[Value] = []
        for member in self.members(cls).values():
            if not any(member is other for other in found):
                found.append(member)
        if not is_flag(cls):
            return found
        return [m for m in found if isinstance(v := self._value_of(m), int) and v.bit_count() == 1]

    def named_member(self, cls: Class, name: Value) -> Value:
        """Return the member of an enumeration that has a name."""
        if not isinstance(name, str):
            return self.lost(f"a member of {cls.name} by a name that is not known")
        known = self.members(cls)
        if name not in known:
            raise CheckError("key", f"KeyError: {name!r}; {cls.name} has {', '.join(known)}")
        return known[name]

    def member_by_value(self, cls: Class, arguments: Sequence[Value]) -> Value:
        """Return the member of an enumeration that has a value."""
        value: Value = arguments[0] if len(arguments) == 1 else tuple(arguments)
        known = self.members(cls)
        if not known and "enum" in cls.flags and arguments:
            return self.lost(f"an enumeration made by {cls.name}()")
        if any(member is value for member in known.values()):
            return value
        if not is_plain(value):
            return self.lost(f"a member of {cls.name} by a value that is not known")
        if cls.host is not None:
            try:
                return self.lift(cls.host(value))
            except ValueError as error:
                raise CheckError("value", f"ValueError: {error}") from None
        for member in known.values():
            if _equal(self._value_of(member), value):
                return member
        missing = self.find_in_class(cls, "_missing_")
        if missing is not MISSING:
            found = self.call(self.bind(missing, cls, cls), [value], {})
            if found is not None:
                return found
        if is_flag(cls) and isinstance(value, int):
            return self._joined(cls, value)
        values = ", ".join(repr(self._value_of(member)) for member in known.values())
        raise CheckError(
            "value", f"ValueError: {value!r} is not a valid {cls.name}; valid are {values}"
        )

    def attribute_of_enumeration(self, cls: Class, name: str) -> Value:
        """Return an attribute that every enumeration has, ``MISSING`` for others."""
        if not is_enumeration(cls) or cls.host is not None:
            return MISSING
        known = self.members(cls)
        if name in ("__members__", _MEMBERS):
            return self.new_dict(known)
        if name == "_member_names_":
            return self.new_list([n for n, m in known.items() if self.attribute(m, "name") == n])
        if name == "_value2member_map_":
            pairs = {self._value_of(member): member for member in known.values()}
            return self.new_dict({k: v for k, v in pairs.items() if is_plain(k)})
        return MISSING

    # Flags.

    def flag_method(self, value: Instance, name: str, arguments: Sequence[Value]) -> Value:
        """Return an operator on flags, ``MISSING`` where there is none."""
        assert isinstance(value.cls, Class)
        own = self._value_of(value)
        others = [self._value_of(other) for other in arguments]
        if not all(isinstance(part, int) for part in (own, *others)):
            return self.lost("an operator on flags that are not known")
        if name == "__bool__":
            return own != 0
        if name == "__contains__":
            return own & others[0] == others[0]
        if name == "__invert__":
            whole = 0
            for member in self.items_of_class(value.cls):
                whole |= self._value_of(member)
            return self._joined(value.cls, whole & ~own)
        return self._joined(value.cls, _JOINING[name](own, others[0]))

    def _joined(self, cls: Class, value: int) -> Value:
        for member in self.members(cls).values():
            if self._value_of(member) == value:
                return member
        parts = [m for m in self.items_of_class(cls) if self._value_of(m) & value]
        name = "|".join(str(self.attribute(m, "_name_")) for m in parts) or None
        made = {"_name_": name, "name": name, "_value_": value, "value": value}
        return Instance(self.heap.new(made), cls)


def _names(ignored: Any) -> Sequence[str]:
    return (
        ignored.split() if isinstance(ignored, str) else ignored if type(ignored) is tuple else ()
    )


def _equal(one: Value, two: Value) -> bool:
    return is_plain(one) and is_plain(two) and bool(one == two)


__all__ = ["Enumerations"]
