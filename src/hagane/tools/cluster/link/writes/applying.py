"""Server-side apply: a configuration of some fields, and those of other managers.

A manager sends all the fields that it wants. Fields that it applied the last time and sends no more
are removed, unless another manager has them; a field that another one has with another value is a
conflict.

Source: Kubernetes, "Server-Side Apply" (1.34).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hagane.tools.cluster.link.writes.fields import (
    Item,
    Managed,
    Member,
    Path,
    leaves,
    managed_anew,
    members,
    read_managed,
    with_managed,
    written,
)
from hagane.tools.cluster.link.writes.strategic import identity, keys_of


class Conflict(Exception):
    """Fields that other managers have with other values.

    Attributes:
        fields: (path, manager) of each.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]):
        self.fields = fields
        several = "s" * (len(fields) > 1)
        who = "; ".join(f'conflict with "{manager}": {path}' for path, manager in fields)
        super().__init__(
            f"Apply failed with {len(fields)} conflict{several}: {who}. Apply with force=true to "
            "take the fields over, leave them out, or give them the values that they have"
        )


class Doubled(Exception):
    """A list of a configuration that has two items of one key."""


def applied(
    value: Mapping[str, Any],
    wanted: Mapping[str, Any],
    manager: str,
    part: str,
    time: str,
    force: bool,
) -> dict[str, Any]:
    """Return an object with a configuration applied, its managers in its metadata.

    Args:
        value: The object as it is.
        wanted: The configuration.
        manager: Who applies it.
        part: The subresource, "" for none.
        time: Now, as RFC 3339 has it.
        force: Take fields over from other managers.

    Raises:
        Conflict: Other managers have fields with other values.
        Doubled: Two items of a list have the same keys.
    """
    _check(wanted)
    managed = read_managed(value)
    writer = Managed(manager, True, part, time, frozenset(leaves(wanted)))
    others = [each for each in managed if each.who != writer.who]
    before = frozenset(leaves(value))
    last = next((each.fields for each in managed if each.who == writer.who), frozenset())
    foreign = {path for each in others for path in each.fields}
    new = _joined(_without(value, (last & before) - writer.fields - foreign, foreign), wanted)
    was, now = leaves(value), leaves(new)
    changed = {path for path, each in now.items() if was.get(path, now) != each}
    changed |= {path for path in was if path not in now}
    clash = [
        (written(path), each.manager)
        for each in others
        for path in sorted(each.fields & changed, key=written)
    ]
    if clash and not force:
        raise Conflict(clash)
    kept = [each for each in managed if each.who != writer.who]
    return with_managed(new, managed_anew(kept, changed & writer.fields, set(now), writer))


def _check(value: Mapping[str, Any], at: str = "") -> None:
    for name, each in value.items():
        here = f"{at}.{name}"
        if isinstance(each, Mapping):
            _check(each, here)
        elif isinstance(each, list):
            steps = [step for step, _ in members(name, each) or ()]
            twice = [step for place, step in enumerate(steps) if step in steps[:place]]
            if twice:
                raise Doubled(f"{here}: two items of the keys {twice[0]}")
            for item in each:
                if isinstance(item, Mapping):
                    _check(item, here)


def _without(
    value: Mapping[str, Any], gone: frozenset[Path], foreign: set[Path], at: Path = ()
) -> dict[str, Any]:
    """Return an object without fields, nor what is empty for their lack.

    An item of a list goes with all its fields, unless others manage one of them.
    """
    out: dict[str, Any] = {}
    for name, each in value.items():
        here = (*at, name)
        inside = frozenset(path for path in gone if path[: len(here)] == here)
        if not inside:
            out[name] = each
        elif here in inside:
            continue
        elif isinstance(each, Mapping):
            rest = _without(each, inside, foreign, here)
            if rest:
                out[name] = rest
        else:
            kept = []
            for step, item in members(name, each) or ():
                place = (*here, step)
                held = any(path[: len(place)] == place for path in foreign)
                if place in inside and not held:
                    continue
                if isinstance(step, Item):
                    # The keys stay, by which others know the item.
                    own = {(*place, key) for key, _ in step.keys}
                    item = _without(item, inside - own, foreign, place)
                kept.append(item)
            if kept:
                out[name] = kept
    return out


def _joined(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(value)
    for name, new in wanted.items():
        old = out.get(name)
        if isinstance(new, Mapping):
            out[name] = _joined(old if isinstance(old, Mapping) else {}, new)
        elif isinstance(new, list) and isinstance(old, list) and new and members(name, new):
            out[name] = _joined_list(name, old, new)
        else:
            out[name] = new
    return out


def _joined_list(name: str, old: list[Any], new: list[Any]) -> list[Any]:
    steps = members(name, new) or []
    if steps and isinstance(steps[0][0], Member):
        return [*old, *(item for item in new if item not in old)]
    keys = keys_of(name, new) or ()
    items = {identity(keys, item): item for item in old}
    for item in new:
        own = identity(keys, item)
        items[own] = _joined(items.get(own, {}), item)
    return list(items.values())
