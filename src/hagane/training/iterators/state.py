"""Where an iterator stands, and the one function that moves it on.

Everything about order lives here, and nothing about loading: an iterator with no, one or many
workers gives the same batches because all of them follow the draws of ``step``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hagane.errors import InvalidArgument

Indices = npt.NDArray[np.int64]


class Order(Protocol):
    """A sequence of dataset indices; an array, or an object that computes its slices."""

    def __len__(self) -> int: ...

    def __getitem__(self, span: slice, /) -> npt.NDArray[Any]: ...


class Sampler(Protocol):
    """Gives the order of every sweep; ``hagane.training.iterators.orders`` has several.

    Attributes:
        computed: Whether ``first`` gives the order of any sweep again, at any time.
    """

    @property
    def computed(self) -> bool:
        """Whether that is so."""

    def first(self, length: int, sweep: int) -> Order | None:
        """Return the order of the first sweep over ``length`` samples."""

    def following(self, order: Order | None, position: int, sweep: int) -> Order | None:
        """Return the order after ``order``, which was left at ``position``."""

    def capture(self) -> Any:
        """Return the state from which ``restore`` goes on."""

    def restore(self, captured: Any) -> None:
        """Go back to a captured state."""


@dataclass(frozen=True, slots=True)
class IteratorState:
    """Position of an iterator between two batches.

    Attributes:
        current_position: Samples of this epoch already given out.
        epoch: Epochs completed since the last reset.
        is_new_epoch: Whether the last batch completed an epoch.
        order: Order of this epoch; None is the order of the indices.
        sweep: Epochs begun in the iterator's life. ``reset`` doesn't set it back, so that an
            iterator that is reset before every epoch still shuffles anew.
        sampler: The sampler's capture of itself once it had given ``order``.
    """

    current_position: int
    epoch: int
    is_new_epoch: bool
    order: Order | None
    sweep: int
    sampler: Any


@dataclass(frozen=True, slots=True)
class Draw:
    """The samples of one batch: ``indices`` and, for each, the sweep it belongs to.

    ``keys`` are the dataset's keys where these are no plain integers.
    """

    indices: Indices
    sweeps: Indices
    keys: tuple[Any, ...] | None = None


def batches_in_epoch(size: int, batch_size: int, drop_last: bool) -> int:
    """Return the number of batches that an epoch of some samples makes."""
    return size // batch_size if drop_last else -(-size // batch_size)


def start(sampler: Sampler, length: int, sweep: int) -> IteratorState:
    """Return the state before the first batch of a sweep."""
    order = sampler.first(length, sweep)
    return IteratorState(0, 0, False, order, sweep, sampler.capture())


def epoch_size(state: IteratorState, length: int) -> int:
    """Return the number of samples in an epoch."""
    return length if state.order is None else len(state.order)


def step(
    state: IteratorState,
    batch_size: int,
    repeat: bool,
    sampler: Sampler,
    length: int,
    drop_last: bool = False,
) -> tuple[IteratorState, Draw | None]:
    """Return the state after one batch, and that batch's samples.

    With ``repeat`` a batch that reaches the end of an epoch is filled from the next one, from
    more than one if it must be. Without, the last batch is shorter, and the draw after it None.
    With ``drop_last`` an epoch ends with its last full batch, whose remainder nobody sees.

    Raises:
        InvalidArgument: An epoch without samples is to be repeated, or the sampler changed the
            size of the epoch.
    """
    if not repeat and state.epoch > 0:
        return state, None
    size = epoch_size(state, length)
    if repeat and size == 0:
        raise InvalidArgument(
            "an iterator that repeats needs a positive epoch size, but the dataset has no "
            "samples; pass repeat=False"
        )
    position, epoch, order, sweep = state.current_position, state.epoch, state.order, state.sweep
    captured, wanted, parts, sweeps = state.sampler, batch_size, [], []
    is_new_epoch = False
    kept = size
    if drop_last:
        kept -= size % batch_size
        if kept == 0 and repeat:
            raise InvalidArgument(
                f"drop_last leaves nothing of an epoch of {size} samples in batches of "
                f"{batch_size}; take a smaller batch_size"
            )
        if not repeat and position >= kept:  # only indices to drop are left
            return IteratorState(0, epoch + 1, True, order, sweep + 1, captured), None
        position = min(position, kept)  # a state saved without drop_last may stand behind
    while position + wanted >= kept:
        parts.append(_slice(order, position, kept))
        sweeps.append(np.full(kept - position, sweep, dtype=np.int64))
        wanted -= kept - position
        order = sampler.following(order, position, sweep + 1)
        if order is not None and len(order) != size:
            raise InvalidArgument(
                f"the order sampler changed the size of the epoch: expected an order of {size} "
                f"indices, as before, got {len(order)}"
            )
        captured = sampler.capture()
        epoch, sweep, position, is_new_epoch = epoch + 1, sweep + 1, 0, True
        if not repeat:
            wanted = 0
            break
    if wanted:
        parts.append(_slice(order, position, position + wanted))
        sweeps.append(np.full(wanted, sweep, dtype=np.int64))
        position += wanted
    draw = Draw(_join(parts), _join(sweeps))
    return IteratorState(position, epoch, is_new_epoch, order, sweep, captured), draw


def _slice(order: Order | None, begin: int, end: int) -> Indices:
    if order is None:
        return np.arange(begin, end, dtype=np.int64)
    return np.asarray(order[begin:end], dtype=np.int64)


def _join(parts: list[Indices]) -> Indices:
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.int64)])
