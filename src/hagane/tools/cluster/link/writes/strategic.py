"""Lists of objects whose items have keys, and the patches that speak of single items.

A strategic merge patch names an item by its key: a patch of the container ``web`` leaves the other
containers as they are.

Source: Kubernetes, "Update API Objects in Place Using kubectl patch"; ``patchMergeKey`` and
``x-kubernetes-list-map-keys`` of the API reference (1.34).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The keys of the items of a list, by the name of the list: its first in patches, all when
# configurations are applied. Of several forms that holds whose first key an item has.
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "addresses": (("type",),),
    "conditions": (("type",),),
    "containers": (("name",),),
    "env": (("name",),),
    "ephemeralContainers": (("name",),),
    "hostAliases": (("ip",),),
    "hostIPs": (("ip",),),
    "imagePullSecrets": (("name",),),
    "initContainers": (("name",),),
    "ownerReferences": (("uid",),),
    "podIPs": (("ip",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "resourceClaims": (("name",),),
    "schedulingGates": (("name",),),
    "secrets": (("name",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "volumeDevices": (("devicePath",),),
    "volumeMounts": (("mountPath",),),
    "volumes": (("name",),),
}
# What stands for a key that an item leaves out.
_DEFAULTS = {"protocol": "TCP"}
SETS = ("finalizers", "podCIDRs")
_DIRECTIVE, _REMOVED, _ORDER, _KEPT = (
    "$patch", "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys",
)  # fmt: skip


class BadStrategicPatch(Exception):
    """A strategic merge patch that cannot be applied."""


def keys_of(name: str, *lists: object) -> tuple[str, ...] | None:
    """Return the keys by which the items of lists of one name are told apart; None without."""
    items = [item for each in lists if isinstance(each, list) for item in each]
    forms = _KEYS.get(name, ())
    for keys in forms:
        if any(isinstance(item, Mapping) and keys[0] in item for item in items):
            return keys
    return forms[0] if forms else None


def identity(keys: Sequence[str], item: object) -> tuple[Any, ...] | None:
    """Return the values of an item's keys; None if one is missing."""
    if not isinstance(item, Mapping):
        return None
    found = tuple(item.get(key, _DEFAULTS.get(key)) for key in keys)
    plain = all(isinstance(each, str | int | float) for each in found)
    return found if plain else None


def patched_strategically(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with a strategic merge patch applied.

    Raises:
        BadStrategicPatch: The patch does not fit.
    """
    verb = patch.get(_DIRECTIVE)
    if verb not in (None, "merge", "replace", "delete"):
        raise BadStrategicPatch(f"$patch: expected merge, replace or delete, got {verb!r}")
    if verb == "delete":
        return {}
    if verb == "replace":
        return {name: each for name, each in patch.items() if name != _DIRECTIVE}
    kept = patch.get(_KEPT)
    if not isinstance(kept, list | None):
        raise BadStrategicPatch(f"{_KEPT}: expected a list of names, got {kept!r}")
    out = {name: each for name, each in value.items() if kept is None or name in kept}
    for name, new in patch.items():
        if name.startswith(_REMOVED):
            list_ = name.removeprefix(_REMOVED)
            if not isinstance(new, list):
                raise BadStrategicPatch(f"{name}: expected a list, got {new!r}")
            if list_ in out:
                out[list_] = [each for each in _list(list_, out[list_]) if each not in new]
        elif name.startswith("$"):
            if name not in (_DIRECTIVE, _KEPT) and not name.startswith(_ORDER):
                raise BadStrategicPatch(f"{name}: there is no such directive")
        elif new is None:
            out.pop(name, None)
        elif isinstance(new, Mapping):
            old = out.get(name)
            out[name] = patched_strategically(old if isinstance(old, Mapping) else {}, new)
            if new.get(_DIRECTIVE) == "delete":
                del out[name]
        elif isinstance(new, list):
            out[name] = _merged_list(name, out.get(name), new)
        else:
            out[name] = new
    for name, order in patch.items():
        list_ = name.removeprefix(_ORDER)
        if name.startswith(_ORDER) and isinstance(out.get(list_), list):
            out[list_] = _ordered(list_, out[list_], value.get(list_), _list(name, order))
    return out


def _list(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise BadStrategicPatch(f"{name}: expected a list, got {value!r}")
    return value


def _merged_list(name: str, old: object, new: list[Any]) -> list[Any]:
    before = list(old) if isinstance(old, list) else []
    if name in SETS:
        both = [*before, *(each for each in new if each not in before)]
        return _ordered(name, both, before, new)
    verbs = [each.get(_DIRECTIVE) if isinstance(each, Mapping) else None for each in new]
    if any(verb not in (None, "merge", "replace", "delete") for verb in verbs):
        raise BadStrategicPatch(f"{name}: $patch: expected merge, replace or delete, got {verbs}")
    if "replace" in verbs:
        return [each for each, verb in zip(new, verbs, strict=True) if verb is None]
    keys = keys_of(name, before, new)
    if keys is None:
        if any(verbs):
            raise BadStrategicPatch(f"{name}: $patch: the items of this list have no key")
        return new
    found: list[tuple[Any, Any]] = [(identity(keys[:1], each), each) for each in before]
    for each, verb in zip(new, verbs, strict=True):
        own = identity(keys[:1], each)
        if own is None:
            raise BadStrategicPatch(f"{name}: expected items with the key {keys[0]!r}, got {each}")
        places = [place for place, (other, _) in enumerate(found) if other == own]
        if verb == "delete":
            found = [entry for entry in found if entry[0] != own]
        elif places:
            found[places[0]] = (own, patched_strategically(found[places[0]][1], each))
        else:
            found.append((own, patched_strategically({}, each)))
    return _ordered(name, [item for _, item in found], before, new)


def _ordered(name: str, items: list[Any], before: object, order: list[Any]) -> list[Any]:
    """Return items in an order of some of them; the others keep their place among those known.

    Args:
        name: Of the list.
        items: All items.
        before: The list before the patch, in whose order the others are.
        order: The items that the patch names, in the order that they shall have.
    """
    keys = keys_of(name, items, order)

    def own(item: object) -> Any:
        return item if keys is None else identity(keys[:1], item)

    was = [own(item) for item in before] if isinstance(before, list) else []
    wanted = [own(item) for item in order]
    named = sorted((i for i in items if own(i) in wanted), key=lambda i: wanted.index(own(i)))
    rest = [item for item in items if own(item) not in wanted]
    out: list[Any] = []
    while rest and named:
        first, second = own(rest[0]), own(named[0])
        known = first in was and second in was
        out.append((rest if known and was.index(first) < was.index(second) else named).pop(0))
    return [*out, *rest, *named]
