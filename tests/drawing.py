"""How many examples property tests of the engine draw: each costs a run of the compiler.

``HAGANE_EXAMPLES`` is a share of the usual number, such as 0.1 where a sanitizer slows all down;
examples are then drawn anew each time.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

_SHARE = os.environ.get("HAGANE_EXAMPLES", "")


def few(examples: int, **named: Any) -> settings:
    """Return settings for a test of ``make test``: the same examples each time, often compiled."""
    return settings(max_examples=_scaled(examples), derandomize=not _SHARE, **named)


def many(examples: int) -> settings:
    """Return settings for a long test, which draws anew each time."""
    return settings(max_examples=_scaled(examples))


def _scaled(examples: int) -> int:
    return max(1, round(examples * float(_SHARE or 1)))
