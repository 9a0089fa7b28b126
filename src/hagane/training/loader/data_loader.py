"""``DataLoader``: the loader for programs written for PyTorch's."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.iterators.base import dataset_length
from hagane.training.iterators.processes.tensors import loaded
from hagane.training.iterators.state import batches_in_epoch
from hagane.training.loader import arguments
from hagane.training.loader.collation import collate_samples, convert
from hagane.training.loader.epochs import Epoch, EpochHere, EpochOfWorkers
from hagane.training.loader.sampling import batches_of, sampler_for

_SETTLED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader:
    """Batches of a dataset, with the arguments and the results of ``torch.utils.data.DataLoader``.

    Each ``iter`` is an epoch. Where the program has imported PyTorch, orders are those that
    PyTorch's loader gives from the same seeds, and default collation makes tensors; without
    PyTorch they are NumPy's, and batches hold NumPy arrays. Differences from PyTorch's:

    - Batches from workers are views of shared memory, written once; beyond three in use they
      are copies.
    - The random numbers of a sample, from ``random``, NumPy and PyTorch, depend on the seed of
      the epoch and the number of the sample in it, and not on the number of workers; unless
      ``worker_init_fn`` sets these generators, which then run on in each worker.
    - The batch of a worker that died is made again, once.

    Args:
        dataset: Has ``__getitem__`` and ``__len__`` (and perhaps ``__getitems__``), or
            ``__iter__``. Each worker iterates over a copy of its own of an iterable dataset;
            ``hagane.training.get_worker_info`` (or PyTorch's) says which part is its.
        batch_size: Samples in a batch; None gives single samples.
        shuffle: A new random order for each epoch.
        sampler: Gives the keys of an epoch each time it is iterated; PyTorch's samplers do.
        batch_sampler: Gives lists of keys, in place of the four arguments before and drop_last.
        num_workers: Worker processes; 0 makes batches in this process.
        collate_fn: Makes a batch of a list of samples, in the worker; None stacks arrays, tensors
            and numbers, and keeps tuples (as lists), lists, dicts and named tuples. Where
            ``batch_size`` is None it is called with a sample.
        pin_memory: Give out copies in pinned memory, where PyTorch has an accelerator.
        drop_last: Leave out the last batch if it is short.
        timeout: Seconds to wait for a batch; 0 waits for ever.
        worker_init_fn: Called in each worker with its number, after the generators are seeded.
        multiprocessing_context: ``"fork"``, ``"forkserver"``, ``"spawn"`` or a context; None is
            Python's own default.
        generator: A ``torch.Generator``, or a generator of NumPy's: the source of orders and
            seeds in place of the global one.
        prefetch_factor: Batches that are made ahead of time for each worker; None is 2.
        persistent_workers: Keep the workers, and their copies of the dataset, from epoch to epoch.
        pin_memory_device: PyTorch pins for the current accelerator; others are refused.
        in_order: Give out batches in their order; else as they are done.

    Raises:
        InvalidArgument: Arguments that exclude each other, or make no sense; it is a ValueError.
        DatasetError: The dataset gives samples neither by index nor by iteration.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        self.iterable = arguments.is_iterable(dataset)
        arguments.check_numbers(
            batch_size, num_workers, timeout, prefetch_factor, persistent_workers
        )
        arguments.check_samplers(
            self.iterable, batch_size, shuffle, sampler, batch_sampler, drop_last
        )
        arguments.check_functions(collate_fn, worker_init_fn, generator)
        self.start_method = arguments.start_method(multiprocessing_context, num_workers)
        if sampler is None and batch_sampler is None and not self.iterable:
            dataset_length(dataset)
        self.dataset = dataset
        self.num_workers = num_workers
        self.own_collation: Callable[[Any], Any] | None = None
        self.collate_fn = collate_fn
        self.pin_memory = bool(pin_memory) and _accelerator(pin_memory_device)
        self.pin_memory_device = pin_memory_device
        self.drop_last = bool(drop_last)
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.persistent_workers = bool(persistent_workers)
        self.in_order = bool(in_order)
        if batch_sampler is not None:
            batch_size = None
        elif sampler is None and not self.iterable:
            sampler = sampler_for(dataset, bool(shuffle), generator)
        if batch_sampler is None and batch_size is not None and not self.iterable:
            batch_sampler = batches_of(sampler, batch_size, self.drop_last)
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.many = batch_sampler is not None and hasattr(dataset, "__getitems__")
        self._persistent: EpochOfWorkers | None = None
        self._reported: int | None = None
        self._settled = True

    # DataLoader[list[Tensor]], as annotations of programs have it
    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTLED and self.__dict__.get("_settled"):
            raise InvalidArgument(
                f"DataLoader: {name} is settled when the loader is made, and cannot be set to "
                f"{value!r} after that; make another loader"
            )
        super().__setattr__(name, value)

    @property
    def collate_fn(self) -> Callable[[Any], Any]:
        """The function that makes a batch of samples: the caller's, or the one in its place."""
        return self.own_collation or (collate_samples if self.batched else convert)

    @collate_fn.setter
    def collate_fn(self, function: Callable[[Any], Any] | None) -> None:
        # Taken from another loader, the default stays the default, which is faster.
        self.own_collation = None if function in (collate_samples, convert) else function

    @property
    def batched(self) -> bool:
        """Whether samples are put together to batches."""
        return self.batch_sampler is not None or (self.iterable and self.batch_size is not None)

    @property
    def index_sampler(self) -> Iterable[Any]:
        """The source of an epoch: keys, or lists of them."""
        chosen = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert chosen is not None
        return chosen

    def __iter__(self) -> Epoch:
        if self.num_workers == 0:
            return EpochHere(self)
        if not self.persistent_workers:
            return EpochOfWorkers(self)
        if self._persistent is None:
            self._persistent = EpochOfWorkers(self)
            return self._persistent
        return self._persistent.restart()

    def __len__(self) -> int:
        """Return the number of batches in an epoch; for an iterable dataset by its length.

        Raises:
            TypeError: The sampler, or the iterable dataset, has no length.
        """
        measured: Any = self.dataset if self.iterable else self.index_sampler
        if not hasattr(measured, "__len__"):
            raise TypeError(
                f"DataLoader: its length is that of its {'dataset' if self.iterable else 'sampler'}"
                f", but {type(measured).__name__} has no __len__"
            )
        length = len(measured)
        if self.iterable:
            if self.batch_size is not None:
                length = batches_in_epoch(length, self.batch_size, self.drop_last)
            self._reported = length
        return length

    def count(self, given: int) -> None:
        """Take note of the batches that an epoch gave; more than were reported are warned of."""
        if self._reported is not None and given > self._reported:
            warnings.warn(
                f"DataLoader: from its length the iterable dataset has {self._reported} batches, "
                "but it gave more; where each worker gives all samples, share them out by "
                "get_worker_info()",
                UserWarning,
                stacklevel=4,
            )

    def pinned(self, batch: Any) -> Any:
        """Return a batch in pinned memory if that was asked for."""
        return _pinned(batch) if self.pin_memory else batch

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_persistent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _accelerator(device: str) -> bool:
    """Say whether memory can be pinned; warn if it cannot."""
    torch = loaded()
    current = None
    if torch is not None and torch.accelerator.is_available():
        current = torch.accelerator.current_accelerator().type
    if device and device.split(":")[0] != (current or device):
        raise InvalidArgument(
            f"DataLoader: pin_memory_device={device!r}: expected the accelerator that PyTorch has, "
            f"{current!r}; leave it out"
        )
    if current is None:
        warnings.warn(
            "DataLoader: pin_memory=True, but PyTorch is not imported or has no accelerator: "
            "batches stay in ordinary memory",
            UserWarning,
            stacklevel=3,
        )
    return current is not None


def _pinned(value: Any) -> Any:
    if hasattr(value, "pin_memory"):
        return value.pin_memory()
    if isinstance(value, Mapping):
        made: Any = {key: _pinned(each) for key, each in value.items()}
        return made if type(value) is dict else type(value)(made)  # type: ignore[call-arg]
    if isinstance(value, tuple):
        parts = [_pinned(each) for each in value]
        make: Any = getattr(type(value), "_make", type(value))
        return make(parts)
    if isinstance(value, list):
        return [_pinned(each) for each in value]
    return value
