"""Notices that a person should see once, not at every call."""

from __future__ import annotations

import logging

_logger = logging.getLogger("hagane.machine")
_given: set[str] = set()


def notice(text: str) -> None:
    """Log a warning, unless this process has logged it before."""
    if text not in _given:
        _given.add(text)
        _logger.warning("%s", text)
