"""Short ways of a session from the cache, which has not read its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hagane.native.ready.caller import Fit, Frame, make_frame
from hagane.runtime.kept import Kept

if TYPE_CHECKING:
    from hagane.ops.definition import Array
    from hagane.runtime.shapes.beside import Beside, Made
    from hagane.runtime.shapes.repeats import Repeats, Shapes


def repeats_of(kept: Kept, find: Callable[[], Beside | None]) -> Repeats[Made] | None:
    """Return the programs for shapes that come again and again, to be made; None if there are none.

    Args:
        kept: The session in the cache.
        find: Finds a way to make them when the first is due; returns None if there is none.
    """
    if not kept.specializes:
        return None
    import logging

    from hagane.runtime.shapes.repeats import Repeats

    names = [item.name for item in kept.inputs]

    def make(shapes: Shapes) -> tuple[Made, int] | None:
        beside = find()
        if beside is None:
            return None
        made = beside.make(dict(zip(names, shapes, strict=True)), kept.loaded.store)
        return None if made is None else (made, made.bytes)

    return Repeats(make, logging.getLogger("hagane.runtime"))


def fit_of(kept: Kept, repeats: Repeats[Made] | None) -> Fit:
    """Return the function from arrays to a short way.

    Args:
        kept: The session in the cache.
        repeats: Programs for single shapes, if there are any.
    """

    def fit(arrays: Sequence[Array], owner: object, full: bool, *past: int) -> Frame | None:
        if not all(item.takes(each) for item, each in zip(kept.inputs, arrays, strict=True)):
            return None
        if repeats is None:
            return make_frame(kept.loaded, arrays, kept.own, kept.order, owner, full)
        from hagane.runtime.shapes.repeats import Past

        shapes = tuple(array.shape for array in arrays)
        found = repeats.find(shapes, Past(*past))
        lease = repeats.lease(shapes)
        if found is None:
            return make_frame(kept.loaded, arrays, kept.own, kept.order, owner, full, lease)
        loaded, which, order = found.loaded, found.own, found.order
        return make_frame(loaded, arrays, which, order, owner, full, lease, general=False)

    return fit
