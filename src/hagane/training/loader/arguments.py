"""Arguments of ``DataLoader`` that go together, and their conflicts."""

from __future__ import annotations

import multiprocessing
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.training.errors import DatasetError
from hagane.training.iterators.processes.protocol import MOST_WORKERS
from hagane.training.iterators.processes.tensors import loaded


def is_iterable(dataset: Any) -> bool:
    """Say whether a dataset gives its samples by iteration and not by index.

    Raises:
        DatasetError: It does neither.
    """
    torch = loaded()
    if torch is not None and isinstance(dataset, torch.utils.data.IterableDataset):
        return True
    if hasattr(dataset, "__getitem__"):
        return False
    if hasattr(dataset, "__iter__"):
        return True
    raise DatasetError(
        "DataLoader: dataset: expected an object with __len__ and __getitem__, or one with "
        f"__iter__, got {type(dataset).__name__}"
    )


def check_numbers(
    batch_size: Any, num_workers: Any, timeout: Any, prefetch_factor: Any, persistent: bool
) -> None:
    """Refuse numbers that are none, or that do not go together.

    Raises:
        InvalidArgument: One of them, named.
    """
    if batch_size is not None and (not _whole(batch_size) or batch_size < 1):
        raise _refused("batch_size", "a positive integer, or None for no batches", batch_size)
    if not _whole(num_workers) or not 0 <= num_workers <= MOST_WORKERS:
        raise _refused(
            "num_workers",
            f"an integer from 0, which makes batches in this process, to {MOST_WORKERS}",
            num_workers,
        )
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
        raise _refused("timeout", "seconds, or 0 to wait for ever", timeout)
    if prefetch_factor is not None and (not _whole(prefetch_factor) or prefetch_factor < 1):
        raise _refused("prefetch_factor", "a positive number of batches a worker", prefetch_factor)
    if num_workers:
        return
    for name, value in (
        ("prefetch_factor", prefetch_factor),
        ("persistent_workers", persistent or None),
        ("timeout", timeout or None),
    ):
        if value is not None:
            raise InvalidArgument(
                f"DataLoader: {name}={value!r} speaks of worker processes, but num_workers is 0: "
                "pass num_workers=1 or more, or leave it out"
            )


def check_samplers(
    iterable: bool,
    batch_size: Any,
    shuffle: Any,
    sampler: Any,
    batch_sampler: Any,
    drop_last: Any,
) -> None:
    """Refuse ways of choosing samples that exclude each other.

    Raises:
        InvalidArgument: Two of them, named.
    """
    if iterable:
        for name, value in (
            ("shuffle", shuffle or None),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if value is not None:
                raise InvalidArgument(
                    f"DataLoader: {name}={value!r} chooses samples by index, but the dataset is "
                    "iterable and has its own order: leave it out, or shuffle in the dataset"
                )
    if sampler is not None and shuffle:
        raise InvalidArgument(
            "DataLoader: sampler and shuffle=True both say in which order samples come: pass one "
            "of them"
        )
    if batch_sampler is not None:
        given = [
            name
            for name, there in (
                ("batch_size", batch_size != 1),
                ("shuffle", shuffle),
                ("sampler", sampler is not None),
                ("drop_last", drop_last),
            )
            if there
        ]
        if given:
            raise InvalidArgument(
                f"DataLoader: batch_sampler says which samples make a batch, and so does "
                f"{', '.join(given)}: pass batch_sampler alone"
            )
    elif batch_size is None and drop_last:
        raise InvalidArgument(
            "DataLoader: drop_last=True needs batches, but batch_size=None gives single samples: "
            "leave one of them out"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not hasattr(value, "__iter__"):
            raise _refused(name, "an iterable", value)


def check_functions(collate_fn: Any, worker_init_fn: Any, generator: Any) -> None:
    """Refuse arguments of a wrong kind.

    Raises:
        InvalidArgument: One of them, named.
    """
    for name, value in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
        if value is not None and not callable(value):
            raise _refused(name, "None or a function", value)
    if generator is None or isinstance(generator, np.random.Generator | np.random.RandomState):
        return
    torch = loaded()
    if torch is None or not isinstance(generator, torch.Generator):
        raise _refused(
            "generator", "None, a torch.Generator or a numpy.random.Generator", generator
        )


def start_method(context: Any, num_workers: int) -> str:
    """Return how worker processes are started.

    Raises:
        InvalidArgument: The system does not know the way, or there are no workers.
    """
    if context is None:
        return multiprocessing.get_start_method()
    methods = multiprocessing.get_all_start_methods()
    method = context if isinstance(context, str) else None
    if hasattr(context, "get_start_method"):
        method = context.get_start_method()
    if method not in methods:
        raise _refused(
            "multiprocessing_context",
            f"one of {', '.join(methods)}, or a context of multiprocessing",
            context,
        )
    if not num_workers:
        raise InvalidArgument(
            f"DataLoader: multiprocessing_context={context!r} speaks of worker processes, but "
            "num_workers is 0: pass num_workers=1 or more, or leave it out"
        )
    return str(method)


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _refused(name: str, expected: str, got: Any) -> InvalidArgument:
    return InvalidArgument(f"DataLoader: {name}: expected {expected}, got {got!r}")
