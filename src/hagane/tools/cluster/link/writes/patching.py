"""Patches of objects: merge patches (RFC 7396) and JSON patches (RFC 6902)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any


class BadPatch(Exception):
    """A JSON patch that cannot be applied."""


def merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with a merge patch applied: null removes, lists are replaced."""
    out = dict(value)
    for name, new in patch.items():
        if new is None:
            out.pop(name, None)
        elif isinstance(new, Mapping):
            old = out.get(name)
            out[name] = merged(old if isinstance(old, Mapping) else {}, new)
        else:
            out[name] = new
    return out


def json_patched(value: Mapping[str, Any], operations: Sequence[Any]) -> dict[str, Any]:
    """Return an object with a JSON patch (RFC 6902) applied.

    Raises:
        BadPatch: An operation does not fit.
    """
    whole: Any = {"": copy.deepcopy(dict(value))}
    for operation in operations:
        if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
            raise BadPatch("expected operations with 'op' and 'path'")
        verb = operation["op"]
        if verb in ("move", "copy"):
            moved = copy.deepcopy(_get(whole, str(operation.get("from", ""))))
            if verb == "move":
                _edit(whole, "remove", str(operation["from"]), None)
            _edit(whole, "add", str(operation["path"]), moved)
        elif verb == "test":
            if _get(whole, str(operation["path"])) != operation.get("value"):
                raise BadPatch(f"the test of {operation['path']!r} failed")
        elif verb in ("add", "remove", "replace"):
            _edit(whole, verb, str(operation["path"]), operation.get("value"))
        else:
            raise BadPatch(f"expected add, remove, replace, move, copy or test; got {verb!r}")
    if not isinstance(whole[""], dict):
        raise BadPatch("the patch leaves no object")
    return whole[""]


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise BadPatch(f"expected a path that begins with '/', got {path!r}")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]


def _get(whole: Any, path: str) -> Any:
    here = whole
    for step in _steps(path):
        try:
            here = here[int(step)] if isinstance(here, list) else here[step]
        except (KeyError, IndexError, TypeError, ValueError):
            raise BadPatch(f"there is nothing at {path!r}") from None
    return here


def _edit(whole: Any, verb: str, path: str, value: Any) -> None:
    *way, last = _steps(path)
    parent = whole
    if way:
        parent = _get(whole, "/".join(way))
    try:
        if isinstance(parent, list):
            index = len(parent) if last == "-" and verb == "add" else int(last)
            if not 0 <= index <= len(parent) - (verb != "add"):
                raise IndexError
            if verb == "add":
                parent.insert(index, value)
            elif verb == "remove":
                del parent[index]
            else:
                parent[index] = value
        elif verb == "remove":
            del parent[last]
        else:
            if verb == "replace" and last not in parent:
                raise KeyError
            parent[last] = value
    except (KeyError, IndexError, TypeError, ValueError):
        raise BadPatch(f"cannot {verb} {path!r}: there is no such place") from None
