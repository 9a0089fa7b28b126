"""Notices that a person should see once, not at every call."""

from __future__ import annotations

_given: set[str] = set()


def notice(text: str) -> None:
    """Log a warning, unless this process has logged it before."""
    if text not in _given:
        import logging

        _given.add(text)
        logging.getLogger("hagane.machine").warning("%s", text)
