"""Orders in which the samples of an epoch are visited."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.errors import InvalidArgument
from hagane.training.iterators.permutation import Permutation
from hagane.training.iterators.state import Indices, Order, Sampler

# Above this many samples an epoch is shuffled by a keyed permutation, computed as it is read,
# in place of an array of eight bytes a sample.
LARGE_EPOCH = 1_000_000

OrderFunction = Callable[[npt.NDArray[Any], int], npt.NDArray[Any]]


class OrderSampler:
    """Base of order samplers: called with an order and a position in it, gives the next order."""

    def __call__(self, current_order: npt.NDArray[Any], current_position: int) -> npt.NDArray[Any]:
        """Return the order of the next epoch, an array as long as ``current_order``."""
        raise NotImplementedError(f"{type(self).__name__} lacks __call__(order, position)")


class ShuffleOrderSampler(OrderSampler):
    """Shuffles every epoch with a generator of its own, whose state iterators save.

    Args:
        random_state: Source of the permutations. None makes one, seeded from NumPy's global
            generator, so that ``numpy.random.seed`` settles the order.
    """

    def __init__(self, random_state: np.random.RandomState | None = None):
        if random_state is None:
            random_state = np.random.RandomState(np.random.randint(0, 2**32, dtype=np.uint32))
        self._random = random_state

    def __call__(self, current_order: npt.NDArray[Any], current_position: int) -> npt.NDArray[Any]:
        """Return a permutation of ``len(current_order)`` indices."""
        return self._random.permutation(len(current_order))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the generator."""
        return {"random_state": self._random.get_state(legacy=False)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the state of the generator."""
        self._random.set_state(state["random_state"])


class InOrder:
    """The order of the indices."""

    computed = False

    def first(self, length: int, sweep: int) -> None:
        """Return None, which is the order of the indices."""

    def following(self, order: Order | None, position: int, sweep: int) -> Order | None:
        """Keep the order, also one that was loaded from a saved state."""
        return order

    def capture(self) -> None:
        """There is nothing to capture."""

    def restore(self, captured: object) -> None:
        """There is nothing to restore."""


class GlobalShuffle:
    """Shuffles by NumPy's global generator when an epoch begins, as Chainer's iterators do.

    The state of that generator is not the iterator's: a snapshot of the trainer has it.
    """

    computed = False

    def first(self, length: int, sweep: int) -> Order:
        """Draw an order."""
        return np.random.permutation(length)

    def following(self, order: Order | None, position: int, sweep: int) -> Order:
        """Draw the next order."""
        return np.random.permutation(0 if order is None else len(order))

    def capture(self) -> None:
        """There is nothing to capture."""

    def restore(self, captured: object) -> None:
        """There is nothing to restore."""


class SeededShuffle:
    """Shuffles by seed and sweep alone, so that there is no random state to lose.

    Args:
        seed: At most 63 bits.
        large: Number of samples above which the order is a keyed permutation of constant memory.
    """

    computed = True

    def __init__(self, seed: int, large: int = LARGE_EPOCH):
        self.seed = seed
        self._large = large

    def first(self, length: int, sweep: int) -> Order:
        """Return the shuffled order of a sweep."""
        if length > self._large:
            return Permutation(length, self.seed, sweep)
        key = np.array([self.seed, sweep], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key)).permutation(length)

    def following(self, order: Order | None, position: int, sweep: int) -> Order:
        """Return the shuffled order of a sweep; earlier sweeps don't matter."""
        return self.first(0 if order is None else len(order), sweep)

    def capture(self) -> None:
        """Seed and sweep say everything."""

    def restore(self, captured: object) -> None:
        """There is nothing to restore."""


class FunctionOrder:
    """An order sampler of Chainer's form, with the state that it can save.

    A sampler that has ``state_dict`` and ``load_state_dict`` resumes exactly. One that draws from
    a generator it doesn't show, such as NumPy's global one, resumes exactly up to the end of the
    epoch, whose order is saved.
    """

    computed = False

    def __init__(self, function: OrderFunction):
        self.function = function

    def first(self, length: int, sweep: int) -> Order:
        """Ask for an order, starting from that of the indices."""
        return self._checked(self.function(np.arange(length), 0))

    def following(self, order: Order | None, position: int, sweep: int) -> Order:
        """Ask for the next order."""
        current = np.arange(0) if order is None else np.asarray(order[0 : len(order)])
        return self._checked(self.function(current, position))

    def capture(self) -> Any:
        """Return the pickled state of the sampler, or None if it shows none."""
        state_dict = getattr(self.function, "state_dict", None)
        return None if state_dict is None else pickle.dumps(state_dict(), protocol=5)

    def restore(self, captured: Any) -> None:
        """Set the state of the sampler if there is one to set."""
        load = getattr(self.function, "load_state_dict", None)
        if captured is not None and load is not None:
            load(pickle.loads(captured))

    def _checked(self, order: Any) -> npt.NDArray[Any]:
        array = np.asarray(order)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidArgument(
                f"order sampler {self.function!r}: expected a one-dimensional array of integer "
                f"indices, got {array.dtype}{list(array.shape)}"
            )
        return array


class IterableOrder:
    """An order sampler of PyTorch's form: each epoch has the indices that iterating it gives.

    It resumes as ``FunctionOrder`` does. One that has ``set_epoch`` is told the number of the
    epoch, counted from 0 in the iterator's life, before it is iterated.
    """

    computed = False

    def __init__(self, indices: Iterable[int]):
        self.indices = indices

    def first(self, length: int, sweep: int) -> Order:
        """Iterate the sampler once."""
        if hasattr(self.indices, "set_epoch"):
            self.indices.set_epoch(sweep)
        found = list(self.indices)
        try:
            return np.array([operator.index(each) for each in found], dtype=np.int64)
        except TypeError as error:
            raise InvalidArgument(
                f"order_sampler {type(self.indices).__name__}: expected indices, got {error}; "
                "batches of indices go to hagane.training.DataLoader as its batch_sampler"
            ) from None

    def following(self, order: Order | None, position: int, sweep: int) -> Order:
        """Iterate the sampler again; earlier sweeps don't matter."""
        return self.first(0, sweep)

    def capture(self) -> Any:
        """Return the pickled state of the sampler, or None if it shows none."""
        state_dict = getattr(self.indices, "state_dict", None)
        return None if state_dict is None else pickle.dumps(state_dict(), protocol=5)

    def restore(self, captured: Any) -> None:
        """Set the state of the sampler if there is one to set."""
        load = getattr(self.indices, "load_state_dict", None)
        if captured is not None and load is not None:
            load(pickle.loads(captured))


def checked_shard(shard: Any) -> tuple[int, int]:
    """Return (rank, ranks).

    Raises:
        InvalidArgument: It is no such pair.
    """
    try:
        rank, ranks = shard
        if isinstance(rank, int) and isinstance(ranks, int) and 0 <= rank < ranks:
            return rank, ranks
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        f"shard: expected (rank, number of ranks) with 0 <= rank < number of ranks, got {shard!r}"
    )


class ShardedOrder:
    """Every ``ranks``-th index of an order, from ``rank`` on.

    All ranks have equally many: where the order does not divide, it goes on from its beginning,
    as with PyTorch's ``DistributedSampler``.
    """

    def __init__(self, order: Order | None, length: int, rank: int, ranks: int):
        self._order = order
        self._whole = length if order is None else len(order)
        self._rank = rank
        self._ranks = ranks

    def __len__(self) -> int:
        return -(-self._whole // self._ranks)

    def __getitem__(self, span: slice) -> Indices:
        begin, end, _ = span.indices(len(self))
        first, last = begin * self._ranks, max(begin, end) * self._ranks
        indices = self._read(first, min(last, self._whole))
        while len(indices) < last - first:
            indices = np.concatenate(
                [indices, self._read(0, min(self._whole, last - first - len(indices)))]
            )
        return indices[self._rank :: self._ranks]

    def _read(self, begin: int, end: int) -> Indices:
        if self._order is None:
            return np.arange(begin, end, dtype=np.int64)
        return np.asarray(self._order[begin:end], dtype=np.int64)


class Sharded:
    """A sampler whose orders are a rank's shares of those of another, which all ranks have alike.

    Args:
        whole: Sampler of the whole epoch.
        length: The dataset's.
        rank: Number of this rank, from 0.
        ranks: Number of ranks.
    """

    def __init__(self, whole: Sampler, length: int, rank: int, ranks: int):
        self._whole = whole
        self._rank = rank
        self._ranks = ranks
        self._length = length
        self._order: Order | None = None

    @property
    def computed(self) -> bool:
        """Whether the orders can be had again at any time."""
        return self._whole.computed

    def first(self, length: int, sweep: int) -> Order:
        """Return the share of the first order."""
        self._length = length
        self._order = self._whole.first(length, sweep)
        return self._share()

    def following(self, order: Order | None, position: int, sweep: int) -> Order:
        """Return the share of the order after the last."""
        self._order = self._whole.following(self._order, position, sweep)
        return self._share()

    def _share(self) -> Order:
        shared = ShardedOrder(self._order, self._length, self._rank, self._ranks)
        # An array is saved with the iterator's state; a computed order is computed again.
        return shared if self.computed else shared[0 : len(shared)]

    def capture(self) -> Any:
        """Return the captured state of the sampler of the whole, with the order that it gave.

        The next order may follow from that one, of which the iterator's state has a share alone.
        """
        captured = self._whole.capture()
        if self.computed or self._order is None:
            return captured
        return pickle.dumps((captured, self._order[0 : len(self._order)]), protocol=5)

    def restore(self, captured: Any) -> None:
        """Restore the sampler of the whole."""
        found = None if captured is None or self.computed else pickle.loads(captured)
        if isinstance(found, tuple):
            captured, self._order = found
        self._whole.restore(captured)


def choose_sampler(
    shuffle: bool | None,
    order_sampler: OrderFunction | Iterable[int] | None,
    seed: int | None,
    shard: tuple[int, int] | None,
    length: int,
) -> Sampler:
    """Return the sampler that the arguments of an iterator ask for; NumPy's is without a seed.

    Raises:
        InvalidArgument: Both ``shuffle`` and ``order_sampler`` are given, ``order_sampler`` is
            neither a function nor an iterable, or ``shard`` no rank of a number of ranks.
    """
    whole = _whole_sampler(shuffle, order_sampler, seed)
    return whole if shard is None else Sharded(whole, length, *checked_shard(shard))


def _whole_sampler(
    shuffle: bool | None, order_sampler: OrderFunction | Iterable[int] | None, seed: int | None
) -> Sampler:
    if order_sampler is not None:
        if shuffle is not None:
            raise InvalidArgument(
                f"'shuffle' is {shuffle} and an 'order_sampler' is given: "
                "leave 'shuffle' at None to use the order sampler"
            )
        if callable(order_sampler):
            return FunctionOrder(order_sampler)
        if isinstance(order_sampler, Iterable) and not isinstance(order_sampler, Iterator):
            return IterableOrder(order_sampler)
        raise InvalidArgument(
            "order_sampler: expected a function of an order and a position, or an object that "
            f"gives the indices of an epoch each time it is iterated, got {order_sampler!r}"
        )
    if shuffle is False:
        return InOrder()
    return GlobalShuffle() if seed is None else SeededShuffle(seed)


def fresh_seed() -> int:
    """Return a seed drawn from NumPy's global generator, which ``numpy.random.seed`` settles."""
    return int(np.random.randint(0, 2**63 - 1, dtype=np.int64))


def next_seed() -> int:
    """Return the seed that ``fresh_seed`` would draw, and draw none."""
    before = np.random.get_state(legacy=False)
    try:
        return fresh_seed()
    finally:
        np.random.set_state(before)
