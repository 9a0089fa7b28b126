"""Common parts of iterators: epochs, saved states, and how they are put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from hagane.errors import InvalidArgument
from hagane.training.errors import DatasetError, InvalidState, IteratorFinalized
from hagane.training.iterators import state as states
from hagane.training.iterators.orders import (
    LARGE_EPOCH,
    OrderFunction,
    choose_sampler,
    fresh_seed,
    next_seed,
)
from hagane.training.iterators.protocol import Iterator
from hagane.training.iterators.state import Draw, IteratorState

Collation = Callable[[list[Any]], Any] | Literal["stack"] | None


class BatchIterator(Iterator):
    """Base of iterators over batches of a dataset.

    A batch is a list of samples, unless ``collate`` makes it something else. After each batch
    ``epoch`` counts the completed epochs and ``is_new_epoch`` says whether one was just completed.
    """

    _finalized = False
    # Whether orders without a seed are drawn from NumPy's global generator, epoch by epoch.
    _draws = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool,
        shuffle: bool | None,
        order_sampler: OrderFunction | Iterable[int] | None,
        seed: int | None,
        collate: Collation,
        drop_last: bool = False,
        shard: tuple[int, int] | None = None,
    ):
        self.dataset = dataset
        self.batch_size = _positive("batch_size", batch_size)
        self.repeat = repeat
        self.shuffle = shuffle
        self.order_sampler = order_sampler
        self.collate = collate
        self.drop_last = bool(drop_last)
        self.shard = shard
        if shard is not None and seed is None and shuffle is not False and order_sampler is None:
            raise InvalidArgument(
                "shard: shuffled epochs are shared out among ranks that shuffle alike; expected a "
                "seed, the same on every rank, got seed=None"
            )
        self._length = dataset_length(dataset)
        self._draws = self._draws and seed is None and self._length <= LARGE_EPOCH
        fresh = next_seed if self._draws else fresh_seed
        self.seed = fresh() if seed is None else _seed(seed)
        self._sampler = self._choose_sampler()
        if not (collate is None or collate == "stack" or callable(collate)):
            raise InvalidArgument(
                f"collate: expected None, 'stack' or a function of a list of samples, "
                f"got {collate!r}"
            )
        self._previous_epoch_detail = -1.0
        self._state = states.start(self._sampler, self._length, 0)

    def __len__(self) -> int:
        """Return the number of batches in an epoch.

        With ``repeat`` and without ``drop_last`` a batch may belong to two epochs; it is counted
        once in each.
        """
        size = states.epoch_size(self._state, self._length)
        return states.batches_in_epoch(size, self.batch_size, self.drop_last)

    def __bool__(self) -> bool:
        return True

    def finalize(self) -> None:
        """Give back processes, threads and memory; batches that were given out stay valid."""
        self._finalized = True

    def _choose_sampler(self) -> states.Sampler:
        seed = None if self._draws else self.seed
        return choose_sampler(self.shuffle, self.order_sampler, seed, self.shard, self._length)

    def _step(self, state: IteratorState) -> tuple[IteratorState, Draw | None]:
        return states.step(
            state, self.batch_size, self.repeat, self._sampler, self._length, self.drop_last
        )

    def _consume(self, state: IteratorState) -> None:
        self._previous_epoch_detail = self.epoch_detail
        self._state = state

    # Where it stands

    @property
    def current_position(self) -> int:
        """Samples of this epoch already given out."""
        return self._state.current_position

    @property
    def epoch(self) -> int:
        """Epochs completed since the last reset."""
        return self._state.epoch

    @property
    def is_new_epoch(self) -> bool:
        """Whether the last batch completed an epoch."""
        return self._state.is_new_epoch

    @property
    def epoch_detail(self) -> float:
        """Epochs completed, with the fraction of the current one."""
        size = states.epoch_size(self._state, self._length)
        return self.epoch + (self.current_position / size if size else 0.0)

    @property
    def previous_epoch_detail(self) -> float | None:
        """The value of ``epoch_detail`` before the last batch; None before the first."""
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    # Going back

    def reset(self) -> None:
        """Go back to the start of an epoch; with shuffling, of one in a new order.

        Raises:
            IteratorFinalized: The iterator was finalized.
        """
        if self._finalized:
            raise IteratorFinalized(
                f"{type(self).__name__} was finalized and cannot be reset; make a new one"
            )
        begun = self._state.sweep + (self._state.current_position > 0)
        self._place(states.start(self._sampler, self._length, begun))
        self._previous_epoch_detail = -1.0

    def _place(self, state: IteratorState) -> None:
        """Stand at a state; batches prefetched from another are dropped."""
        self._state = state

    # Saved states

    def state_dict(self) -> dict[str, Any]:
        """Return where the iterator stands, as of the last batch given out.

        The dict holds numbers, bytes and one array; ``pickle``, and ``torch.save``, take it.
        """
        order = self._state.order
        return {
            "current_position": self.current_position,
            "epoch": self.epoch,
            "is_new_epoch": self.is_new_epoch,
            "previous_epoch_detail": self._previous_epoch_detail,
            "sweep": self._state.sweep,
            "seed": self.seed,
            "order": order.copy() if isinstance(order, np.ndarray) else None,
            "sampler": self._state.sampler,
            "samples": self._length,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a saved state; the same batches follow as when it was saved.

        Raises:
            InvalidState: It was saved over a dataset of another length, or lacks entries.
        """
        try:
            if state["samples"] != self._length:
                raise InvalidState(
                    f"the state was saved over a dataset of {state['samples']} samples, but this "
                    f"one has {self._length}"
                )
            self._adopt(
                state["seed"],
                state["current_position"],
                state["epoch"],
                state["is_new_epoch"],
                state["order"],
                state["sweep"],
                state["sampler"],
            )
            self._previous_epoch_detail = state["previous_epoch_detail"]
        except KeyError as error:
            raise InvalidState(f"the state lacks the entry {error}") from None

    def serialize(self, serializer: Any) -> None:
        """Save to, or load from, a serializer: ``serializer(key, value)`` returns the value.

        Keys are Chainer's, and of values that Chainer does not save: ``seed``, ``sweep`` and the
        order sampler's state. Where they are missing, as in a snapshot of Chainer's, the order of
        the epoch is as saved and the epochs after it follow this iterator's own seed.
        """
        position = serializer("current_position", self.current_position)
        epoch = serializer("epoch", self.epoch)
        is_new_epoch = serializer("is_new_epoch", self.is_new_epoch)
        order = self._state.order
        if isinstance(order, np.ndarray):
            order = order.copy()
            order = _first_found(serializer, ("order", "_order"), order)
        detail = _optional(serializer, "previous_epoch_detail", self._previous_epoch_detail, None)
        seed = _optional(serializer, "seed", self.seed, self.seed)
        sweep = _optional(serializer, "sweep", self._state.sweep, int(epoch))
        sampler = _serialize_bytes(serializer, "sampler_state", self._state.sampler)
        self._adopt(
            int(seed), int(position), int(epoch), bool(is_new_epoch), order, int(sweep), sampler
        )
        if detail is None:  # a snapshot from before Chainer saved it
            size = states.epoch_size(self._state, self._length)
            detail = self.epoch + (self.current_position - self.batch_size) / max(1, size)
            detail = max(detail, 0.0) if self.epoch_detail > 0 else -1.0
        self._previous_epoch_detail = float(detail)

    def _adopt(
        self,
        seed: int,
        position: int,
        epoch: int,
        is_new_epoch: bool,
        order: Any,
        sweep: int,
        sampler: Any,
    ) -> None:
        if seed != self.seed:
            self.seed = seed
            self._sampler = self._choose_sampler()
        self._sampler.restore(sampler)
        if order is None and self._sampler.computed:
            order = self._sampler.first(self._length, sweep)
        if order is not None and not 0 <= position <= len(order):
            raise InvalidState(f"the state stands at sample {position} of an epoch of {len(order)}")
        self._place(IteratorState(position, epoch, is_new_epoch, order, sweep, sampler))


def dataset_length(dataset: Any) -> int:
    """Return the number of samples of a dataset.

    Raises:
        DatasetError: It is no dataset.
    """
    if not hasattr(dataset, "__getitem__"):
        raise DatasetError(
            f"dataset: expected an object with __len__ and __getitem__, got "
            f"{type(dataset).__name__}, which lacks __getitem__"
        )
    try:
        return len(dataset)
    except TypeError as error:
        raise DatasetError(
            f"dataset: expected an object with __len__ and __getitem__, got "
            f"{type(dataset).__name__}: {error}"
        ) from None


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidArgument(f"{name}: expected a positive integer, got {value!r}")
    return int(value)


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
        raise InvalidArgument(f"seed: expected an integer from 0 to 2**63 - 1, got {value!r}")
    return int(value)


def _optional(serializer: Any, key: str, value: Any, missing: Any) -> Any:
    try:
        found = serializer(key, value)
    except KeyError:
        return missing
    return missing if found is None else found


def _first_found(serializer: Any, keys: tuple[str, ...], value: Any) -> Any:
    for key in keys[:-1]:
        try:
            return _default(serializer(key, value), value)
        except KeyError:
            continue
    return _default(serializer(keys[-1], value), value)


def _default(found: Any, value: Any) -> Any:
    return value if found is None else found


def _serialize_bytes(serializer: Any, key: str, value: bytes | None) -> bytes | None:
    """Pass bytes through a serializer that knows numbers and arrays of a known length only."""
    data = np.frombuffer(value or b"", np.uint8)
    length = int(_optional(serializer, f"{key}_length", len(data), -1))
    if length < 0:
        return None
    array = data.copy() if length == len(data) else np.zeros(length, np.uint8)
    if length:
        array = _default(serializer(key, array), array)
    return bytes(array) or None
