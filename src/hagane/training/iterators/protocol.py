"""The base of iterators that programs write themselves, as Chainer's programs do."""

from __future__ import annotations

from typing import Any


class Iterator:
    """Gives out batches, one a call of ``__next__``, and counts epochs.

    Programs that derive from it define ``__next__``, and the attributes ``epoch``, ``epoch_detail``
    and ``is_new_epoch`` that triggers read.
    """

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: There is none left.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no __next__")

    def next(self) -> Any:
        """Return the next batch, as ``__next__`` does."""
        return self.__next__()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *details: object) -> None:
        self.finalize()

    def finalize(self) -> None:
        """Give back processes, threads and files that it holds."""

    def serialize(self, serializer: Any) -> None:
        """Read or write the place in the dataset."""
