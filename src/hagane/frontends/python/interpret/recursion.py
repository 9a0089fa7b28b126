"""Recursion: whether a call of a function within itself comes nearer to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hagane.frontends.python.values.objects import Function, Instance
from hagane.frontends.python.values.values import (
    Choice,
    Host,
    Many,
    Range,
    Real,
    Ref,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Expr

_DECIDED_BY_DATA = (Expr, Choice, Truth, Real, Unknown, Many, Range, Function)


def comes_nearer(
    before: Sequence[Value], now: Sequence[Value], contents: Mapping[int, Any]
) -> bool:
    """Whether known arguments of a call differ from those of the call that it is made in.

    Where none does, the data alone decide when the recursion ends.

    Args:
        before: The arguments of the outer call.
        now: Those of the inner one.
        contents: What containers hold now, by their keys; those of known items may have had more
            of them before.
    """
    return len(before) != len(now) or any(
        _differs(one, other, contents) for one, other in zip(before, now, strict=True)
    )


def _differs(before: Value, now: Value, contents: Mapping[int, Any]) -> bool:
    if isinstance(before, _DECIDED_BY_DATA) or isinstance(now, _DECIDED_BY_DATA):
        return False
    if isinstance(before, Tensor) and isinstance(now, Tensor):
        return before.known is not now.known or _differs(before.shape, now.shape, contents)
    if isinstance(before, tuple) and isinstance(now, tuple):
        return comes_nearer(before, now, contents)
    if isinstance(before, Instance) and isinstance(now, Instance):
        return before.key != now.key
    if isinstance(now, Ref | Stream):
        return not isinstance(contents.get(now.key), Many)
    if isinstance(before, Host) and isinstance(now, Host):
        return before.object is not now.object
    return type(before) is not type(now) or bool(before != now)
