"""Samplers: which samples an epoch has, and which of them make a batch.

Where the program has imported PyTorch a ``DataLoader`` uses PyTorch's own samplers, so that
``torch.manual_seed`` and a ``torch.Generator`` settle the same orders as with PyTorch's loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.training.expected import need, need_number
from hagane.training.iterators.processes.tensors import loaded

Generator = np.random.Generator | np.random.RandomState


class SequentialSampler:
    """The indices of a dataset in their order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler:
    """The indices of a dataset in a new random order each time.

    Args:
        data_source: The dataset.
        generator: Source of the orders; None is NumPy's global generator.
    """

    def __init__(self, data_source: Sized, generator: Generator | None = None):
        self.data_source = data_source
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        source: Any = np.random if self.generator is None else self.generator
        yield from source.permutation(len(self.data_source)).tolist()

    def __len__(self) -> int:
        return len(self.data_source)


class BatchSampler:
    """Lists of indices from another sampler.

    Args:
        sampler: Gives indices.
        batch_size: Indices in a list.
        drop_last: Leave out the last list if it is short.
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


class DistributedSampler:
    """One rank's share of the indices of a dataset; all ranks have equally many.

    Args:
        dataset: The dataset, of one length on all ranks.
        num_replicas: Number of ranks.
        rank: Number of this rank, from 0.
        shuffle: Shuffle each epoch; call ``set_epoch`` before each, or all are alike.
        seed: The same on all ranks.
        drop_last: Leave out samples beyond a multiple of the ranks; else some come twice.

    Raises:
        InvalidArgument: ``rank`` is none of ``num_replicas`` ranks.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        need("DistributedSampler: dataset", dataset, "a dataset with a length", "__len__")
        need_number("DistributedSampler: num_replicas", num_replicas, positive=True)
        need_number("DistributedSampler: rank", rank)
        if not 0 <= rank < num_replicas:
            raise InvalidArgument(
                f"DistributedSampler: expected a rank from 0 to {num_replicas - 1}, got {rank}"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        length, total = len(self.dataset), len(self) * self.num_replicas
        order = np.arange(length)
        if self.shuffle:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(length)
        if length:
            order = np.resize(order, total) if total > length else order[:total]
        return iter(order[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        length = len(self.dataset)
        whole = length // self.num_replicas
        return whole if self.drop_last else -(-length // self.num_replicas)


def sampler_for(dataset: Any, shuffle: bool, generator: Any) -> Any:
    """Return the sampler of a dataset for which none was given."""
    torch = loaded()
    if torch is not None and not isinstance(generator, Generator):
        module = torch.utils.data
        if shuffle:
            return module.RandomSampler(dataset, generator=generator)
        return module.SequentialSampler(dataset)
    return RandomSampler(dataset, generator) if shuffle else SequentialSampler(dataset)


def batches_of(sampler: Any, batch_size: int, drop_last: bool) -> Any:
    """Return the sampler of batches over one of indices."""
    torch = loaded()
    kind = BatchSampler if torch is None else torch.utils.data.BatchSampler
    return kind(sampler, batch_size, drop_last)


def base_seed(generator: Any) -> int:
    """Return 63 bits, drawn from where PyTorch's loader draws the seed of its workers.

    That is the generator that was given, else the global one of PyTorch or, where the program has
    not imported it, of NumPy.
    """
    torch = loaded()
    if isinstance(generator, np.random.Generator):
        return int(generator.integers(0, 2**63 - 1))
    if isinstance(generator, np.random.RandomState) or (generator is None and torch is None):
        source: Any = np.random if generator is None else generator
        return int(source.randint(0, 2**63 - 1, dtype=np.int64))
    assert torch is not None
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
