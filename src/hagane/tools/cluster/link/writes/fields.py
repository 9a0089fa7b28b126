"""Who manages which fields of an object, as ``metadata.managedFields`` has it.

A field is a path: names, and for items of lists that have keys the values of these. Lists of other
items are one field. An entry has a manager, the operation by which it came to the fields
(``Apply``, or ``Update`` by any other write), the part of the object, and the fields.

Source: Kubernetes, "Server-Side Apply", and ``FieldsV1`` of the API reference (1.34).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hagane.tools.cluster.link.writes.strategic import SETS, identity, keys_of

# What the server sets, and what says which object is meant: nobody manages these.
_NOBODY = ("apiVersion", "kind")
_NOBODY_META = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation",
    "deletionTimestamp", "managedFields", "selfLink",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """The item of a list with certain values of its keys."""

    keys: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return "[" + ",".join(f"{name}={json.dumps(word)}" for name, word in self.keys) + "]"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a list that is a set."""

    value: str

    def __str__(self) -> str:
        return f"[={json.dumps(self.value)}]"


Path = tuple[str | Item | Member, ...]


@dataclass(frozen=True, slots=True)
class Managed:
    """The fields of one manager.

    Attributes:
        applied: By server-side apply, and not by another write.
        part: The subresource by which it wrote, "" for none.
        time: When it last did, as RFC 3339 has it.
    """

    manager: str
    applied: bool
    part: str
    time: str
    fields: frozenset[Path]

    @property
    def who(self) -> tuple[str, bool, str]:
        """The entry that a manager's next write of this kind changes."""
        return self.manager, self.applied, self.part


def written(path: Path) -> str:
    """Return a path as messages have it: ``.spec.containers[name="web"].image``."""
    return "".join(f".{step}" if isinstance(step, str) else str(step) for step in path)


def leaves(value: Mapping[str, Any], at: Path = ()) -> dict[Path, Any]:
    """Return the fields of an object, and their values; items of lists have a path of their own."""
    found: dict[Path, Any] = {}
    for name, each in value.items():
        if (not at and name in _NOBODY) or (at == ("metadata",) and name in _NOBODY_META):
            continue
        here = (*at, name)
        items = members(name, each) if isinstance(each, list) and each else None
        if items is not None:
            for step, item in items:
                found[*here, step] = item if isinstance(step, Member) else None
                if isinstance(step, Item):
                    found.update(leaves(item, (*here, step)))
        elif isinstance(each, Mapping) and each:
            found.update(leaves(each, here))
        elif at or not isinstance(each, Mapping):
            found[here] = each
    return found


def members(name: str, items: list[Any]) -> list[tuple[Item | Member, Any]] | None:
    """Return the items of a list, each with the step to it; None if the list is one field."""
    if name in SETS:
        return [(Member(str(item)), item) for item in items]
    keys = keys_of(name, items)
    if keys is None:
        return None
    owned = [(identity(keys, item), item) for item in items]
    if any(own is None for own, _ in owned):
        return None
    return [(Item(tuple(zip(keys, own, strict=True))), item) for own, item in owned if own]


def read_managed(value: Mapping[str, Any]) -> tuple[Managed, ...]:
    """Return the managers that an object's metadata names."""
    found = []
    for entry in (value.get("metadata") or {}).get("managedFields") or ():
        found.append(
            Managed(
                str(entry.get("manager", "")),
                entry.get("operation") == "Apply",
                str(entry.get("subresource", "")),
                str(entry.get("time", "")),
                frozenset(_read(entry.get("fieldsV1") or {}, ())),
            )
        )
    return tuple(found)


def with_managed(value: Mapping[str, Any], managed: Iterable[Managed]) -> dict[str, Any]:
    """Return an object whose metadata names its managers; those without a field are left out."""
    entries: list[dict[str, Any]] = [
        {
            "manager": each.manager,
            "operation": "Apply" if each.applied else "Update",
            "apiVersion": value.get("apiVersion", ""),
            "time": each.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(each.fields),
            **({"subresource": each.part} if each.part else {}),
        }
        for each in managed
        if each.fields
    ]
    meta = {k: v for k, v in value["metadata"].items() if k != "managedFields"}
    return {**value, "metadata": {**meta, **({"managedFields": entries} if entries else {})}}


def after_update(
    old: Mapping[str, Any], new: Mapping[str, Any], manager: str, part: str, time: str
) -> tuple[Managed, ...]:
    """Return the managers of an object after a write that was no server-side apply.

    Args:
        old: The object before; its metadata names the managers until now.
        new: The object after.
        manager: Who wrote.
        part: The subresource, "" for none.
        time: Now, as RFC 3339 has it.
    """
    before, after = leaves(old), leaves(new)
    changed = {path for path, each in after.items() if before.get(path, after) != each}
    if not changed and len(before) == len(after):
        return read_managed(old)
    return managed_anew(
        read_managed(old), changed, set(after), Managed(manager, False, part, time, frozenset())
    )


def managed_anew(
    managed: Iterable[Managed], changed: set[Path], there: set[Path], writer: Managed
) -> tuple[Managed, ...]:
    """Return managers after one of them has taken changed fields over.

    Args:
        managed: The managers until now.
        changed: The fields with another value, which nobody else manages from now on.
        there: All fields of the object; others are forgotten.
        writer: The entry of the one who wrote; its fields are kept besides.
    """
    out, own = [], writer
    for each in managed:
        fields = each.fields & there
        if each.who == writer.who:
            own = replace(writer, fields=writer.fields | fields)
        else:
            out.append(replace(each, fields=fields - changed))
    return (*out, replace(own, fields=own.fields | changed))


def _tree(fields: Iterable[Path]) -> dict[str, Any]:
    """Return fields as FieldsV1: ``f:`` name, ``k:`` keys, ``v:`` member, ``.`` the item itself."""
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=written):
        here = tree
        for step in path:
            here = here.setdefault(_step(step), {})
        if isinstance(path[-1], Item):
            here["."] = {}
    return tree


def _step(step: str | Item | Member) -> str:
    if isinstance(step, Item):
        return "k:" + json.dumps(dict(step.keys), separators=(",", ":"))
    return "v:" + json.dumps(step.value) if isinstance(step, Member) else f"f:{step}"


def _read(tree: Mapping[str, Any], at: Path) -> Iterator[Path]:
    for name, inner in tree.items():
        if name == ".":
            if at and isinstance(at[-1], Item):
                yield at
            continue
        kind, _, text = name.partition(":")
        step: str | Item | Member = text
        try:
            if kind == "k":
                step = Item(tuple(json.loads(text).items()))
            elif kind == "v":
                step = Member(str(json.loads(text)))
        except (ValueError, AttributeError, TypeError):
            continue
        if isinstance(inner, Mapping) and inner:
            yield from _read(inner, (*at, step))
        else:
            yield (*at, step)
