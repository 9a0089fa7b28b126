"""Datasets for loaders, which workers can import."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

from hagane.training import get_worker_info


class Pair(NamedTuple):
    x: Any
    y: Any


SAMPLES: dict[str, Any] = {
    "tensors": lambda i: (torch.full((2, 3), i), torch.tensor(i)),
    "arrays": lambda i: [np.full((2, 3), i, np.float32), np.int16(i)],
    "dict": lambda i: {"x": np.full(3, i), "name": f"n{i}", "pair": (i, float(i), i % 2 == 0)},
    "named tuple": lambda i: Pair(np.float64(i), {"deep": [torch.tensor([i]), "text"]}),
    "number": lambda i: i * 1.5,
    "string": lambda i: f"sample {i}",
    "bytes": lambda i: (bytes([i]), i),
    "half": lambda i: torch.full((4,), i, dtype=torch.bfloat16),
    "ordered": lambda i: OrderedDict(b=i, a=torch.ones(2) * i),
    "empty array": lambda i: np.zeros((0, 2), np.float32),
    "complex tensor": lambda i: torch.tensor([1j * i]).conj(),
    "transposed": lambda i: torch.arange(6).reshape(2, 3).t() + i,
    "numpy text": lambda i: (np.str_(f"s{i}"), np.bool_(i % 2)),
}


class Kind(Dataset[Any]):
    """Samples of a kind."""

    def __init__(self, kind: str, length: int = 11):
        self.kind = kind
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return SAMPLES[self.kind](index)


class AtOnce(Kind):
    """Samples that come a batch at a time."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(*self[index], len(indices)) for index in indices]


class Lookup:
    """Samples under words."""

    def __getitem__(self, key: str) -> int:
        return len(key)


class Stream(IterableDataset[Any]):
    """Numbers, of which each worker gives every n-th; or all, if they are not shared out."""

    def __init__(self, length: int, shared: bool = True):
        self.length = length
        self.shared = shared

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        if info is None or not self.shared:
            return iter(range(self.length))
        return iter(range(info.id, self.length, info.num_workers))


class Plain:
    """An iterable that knows nothing of PyTorch."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        yield from range(0 if info is None else info.id, 7, 1 if info is None else info.num_workers)


class Failing(IterableDataset[Any]):
    """A stream that raises at its third sample."""

    def __iter__(self) -> Iterator[Any]:
        yield 0
        yield 1
        raise KeyError("no third")


class Drawing(Dataset[Any]):
    """Random numbers."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return index, random.random(), float(np.random.rand()), torch.rand(1)


class DrawingStream(IterableDataset[Any]):
    """Random numbers in a stream."""

    def __iter__(self) -> Iterator[Any]:
        for _ in range(3):
            yield random.random(), float(torch.rand(1))


class Odd(Dataset[Any]):
    """Samples that default collation refuses."""

    def __init__(self, kind: str):
        self.kind = kind

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return {
            "none": {"a": None, "b": 1},
            "ragged": (1, {"image": np.zeros((2, 3 + index // 2))}),
            "ragged tensors": torch.zeros(index + 1),
            "keys": {"a": 1, f"b{index}": 2},
            "lengths": [1] * (index + 1),
            "object": (object(),),
            "text array": np.array(["a"]),
        }[self.kind]


def double(samples: list[Any]) -> Any:
    return torch.stack([torch.as_tensor(s[0]) for s in samples]) * 2, [s[1] for s in samples]


def fails(samples: list[Any]) -> Any:
    raise ArithmeticError("no such batch")


class Changed(Dataset[Any]):
    """What ``worker_init`` changes in the workers' copies."""

    def __init__(self) -> None:
        self.offset = 0

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index + self.offset


def set_offset(worker: int) -> None:
    info = torch.utils.data.get_worker_info()
    ours = get_worker_info()
    assert info is not None
    assert ours is not None
    assert info.dataset is ours.dataset
    assert info.seed == ours.seed == torch.initial_seed()
    info.dataset.offset = 100 * (worker + 1)


def refuse(worker: int) -> None:
    raise OSError("no such mount")
