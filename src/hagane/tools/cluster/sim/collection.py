"""Python's cycle collector, held back while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 100_000


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collect cycles a hundredth as often, and leave existing objects alone.

    A pod that ends leaves no cycle behind, so counting references frees it at once; the
    collector would only walk over the live pods again and again, a fifth of the time of a large
    run. It stays on for the cycles of users' schedulers and submitters.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
