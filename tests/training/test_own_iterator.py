"""Iterators that programs derive from the base, as Chainer's examples do."""

from __future__ import annotations

import pytest

from hagane.dataset import Iterator
from hagane.iterators import SerialIterator


class _Counted(Iterator):
    def __init__(self, count: int):
        super().__init__()
        self.left = count
        self.current_position = 0

    def __next__(self) -> list[int]:
        if not self.left:
            raise StopIteration
        self.left -= 1
        self.current_position += 1
        return [self.left]


def test_a_program_derives_an_iterator_without_arguments_of_the_base() -> None:
    with _Counted(2) as batches:
        assert batches.next() == [1]
        assert list(batches) == [[0]]
    assert batches.current_position == 2


def test_the_base_has_no_batches() -> None:
    with pytest.raises(NotImplementedError, match="Iterator defines no __next__"):
        next(Iterator())


def test_iterators_of_the_library_derive_from_the_base() -> None:
    assert isinstance(SerialIterator([1, 2], 1), Iterator)
