"""Bodies of requests: JSON of the expected form, or an answer that names the fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request


async def read_object(request: Request) -> dict[str, Any]:
    """Return the body of a request, an object of JSON.

    Raises:
        HTTPException: 400, it is none.
    """
    raw = await request.body()
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        detail = str(error) if isinstance(error, ValueError) else "nested too deep"
        raise HTTPException(400, f"body: expected JSON: {detail}") from None
    if not isinstance(value, dict):
        raise HTTPException(400, f"body: expected an object of JSON, got {_named(value)}")
    return value


def whole(
    body: Mapping[str, Any], key: str, low: int, high: int, default: int | type | None = int
) -> Any:
    """Return a whole number of a body.

    Args:
        body: the object.
        key: of the number.
        low: the least that is taken.
        high: the most.
        default: for a missing key; the type ``int`` itself if it must not be missing.

    Raises:
        HTTPException: 422, it is missing, no whole number, or out of range.
    """
    if key not in body or (body[key] is None and default is not int):
        if default is int:
            raise HTTPException(422, f"{key}: expected a whole number, got nothing")
        return default
    value = body[key]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise HTTPException(422, f"{key}: expected a whole number, got {_named(value)}")
    if not low <= value <= high:
        shown = value if abs(value) < 10**12 else "a larger one"
        raise HTTPException(422, f"{key}: expected a number from {low} to {high}, got {shown}")
    return value


def word(body: Mapping[str, Any], key: str, choices: tuple[str, ...], default: str) -> str:
    """Return one of some words of a body; raises HTTPException 422 for another."""
    value = body.get(key, default)
    if value not in choices:
        raise HTTPException(
            422, f"{key}: expected one of {', '.join(choices)}, got {str(value)[:60]!r}"
        )
    return str(value)


def _named(value: Any) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
