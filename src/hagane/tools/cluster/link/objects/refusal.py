"""Requests that are answered with a status in place of an object."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """A request that is answered with a status."""

    def __init__(self, code: int, reason: str, message: str):
        super().__init__(message)
        self.code = code
        self.status = status(code, reason, message)


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    """Return a failure as an object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
