"""Samples stored one after the other: pickles, and lines of text."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from hagane.training.datasets.base import DatasetMixin, PerProcess, existing
from hagane.training.errors import DatasetError


class PickleDatasetWriter:
    """Writes samples as pickles, one after the other.

    Args:
        writer: File opened for writing bytes.
        protocol: Pickle protocol.
    """

    def __init__(self, writer: BinaryIO, protocol: int = pickle.HIGHEST_PROTOCOL):
        self._writer = writer
        self._protocol = protocol

    def write(self, x: Any) -> None:
        """Append a sample."""
        pickle.dump(x, self._writer, protocol=self._protocol)

    def flush(self) -> None:
        """Hand the written bytes to the system."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def __enter__(self) -> PickleDatasetWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class PickleDataset(DatasetMixin):
    """Samples from a file of pickles, such as ``PickleDatasetWriter`` makes.

    The file is read once to find where each begins. Pickles run code: open only files whose
    origin you trust.

    Args:
        reader: File opened for reading bytes, or its path; from a path each process opens its
            own.
    """

    def __init__(self, reader: Any):
        self._given = reader
        if isinstance(reader, str | Path):
            self._reader: PerProcess[Any] = PerProcess(partial(open, existing(reader), "rb"))
        else:
            self._reader = _Held(reader)
        file = self._reader.get()
        file.seek(0)
        self._begins: list[int] = []
        while True:
            begin = file.tell()
            try:
                pickle.load(file)
            except EOFError:
                break
            except pickle.UnpicklingError as error:
                raise DatasetError(
                    f"PickleDataset: sample {len(self._begins)}, at byte {begin}, is no pickle: "
                    f"{error}"
                ) from error
            self._begins.append(begin)

    def __len__(self) -> int:
        return len(self._begins)

    def get_example(self, i: int) -> Any:
        """Return the sample."""
        file = self._reader.get()
        file.seek(self._begins[i])
        return pickle.load(file)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> PickleDataset:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Held(PerProcess[Any]):
    """A file that was opened by someone else and goes where it goes."""

    def __init__(self, file: Any):
        super().__init__(lambda: file)
        self._file = file

    def get(self) -> Any:
        return self._file

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        pass  # its opener closes it

    def __reduce__(self) -> tuple[Any, ...]:
        return _Held, (self._file,)


def open_pickle_dataset(path: str | Path) -> PickleDataset:
    """Return the samples of a file of pickles."""
    return PickleDataset(path)


def open_pickle_dataset_writer(
    path: str | Path, protocol: int = pickle.HIGHEST_PROTOCOL
) -> PickleDatasetWriter:
    """Return a writer of a new file of pickles."""
    return PickleDatasetWriter(open(path, "wb"), protocol)


class TextDataset(DatasetMixin):
    """Lines of a text file; of several files, tuples of their lines.

    The files are read once to find where lines begin.

    Args:
        paths: A path, or several.
        encoding: Of all files, or one for each; None is UTF-8.
        errors: The treatment of bytes that are no text, as for ``open``.
        newline: Which ends of lines are kept, as for ``open``.
        filter_func: Called with the lines of a place, one argument for each file; says whether
            to keep it.

    Raises:
        DatasetError: The files differ in their number of lines.
    """

    def __init__(
        self,
        paths: Any,
        encoding: str | Sequence[str] | None = None,
        errors: str | Sequence[str] | None = None,
        newline: str | Sequence[str] | None = None,
        filter_func: Callable[..., bool] | None = None,
    ):
        names = [paths] if isinstance(paths, str | Path) else list(paths)
        self._single = len(names) == 1
        if not names:
            raise DatasetError("TextDataset: expected at least one path, got none")
        options = [_each(option, len(names)) for option in (encoding, errors, newline)]
        self._files = [
            PerProcess(partial(_open_text, existing(name), code or "utf-8", wrong, end))
            for name, code, wrong, end in zip(names, *options, strict=True)
        ]
        found = [_line_starts(file.get()) for file in self._files]
        lengths = {len(starts) for starts in found}
        if len(lengths) > 1:
            raise DatasetError(
                "TextDataset: expected files of one number of lines, got "
                + ", ".join(f"{len(s)} in '{n}'" for n, s in zip(names, found, strict=True))
            )
        self._starts = found
        self._lines: Any = None
        if filter_func is not None:
            kept = [i for i in range(len(found[0])) if filter_func(*self._read(i))]
            self._lines = np.asarray(kept, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._starts[0]) if self._lines is None else len(self._lines)

    def get_example(self, i: int) -> Any:
        """Return the line, or the tuple of lines, without a change to its end."""
        lines = self._read(i if self._lines is None else int(self._lines[i]))
        return lines[0] if self._single else tuple(lines)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def __enter__(self) -> TextDataset:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, number: int) -> list[str]:
        lines = []
        for file, starts in zip(self._files, self._starts, strict=True):
            text = file.get()
            text.seek(starts[number])
            lines.append(text.readline())
        return lines


def _each(option: Any, count: int) -> list[Any]:
    if option is None or isinstance(option, str):
        return [option] * count
    if len(option) != count:
        raise DatasetError(
            f"TextDataset: expected one option for each of {count} files, got {len(option)}"
        )
    return list(option)


def _open_text(path: str, encoding: str, errors: str | None, newline: str | None) -> Any:
    return io.open(path, encoding=encoding, errors=errors, newline=newline)  # noqa: UP020


def _line_starts(file: Any) -> list[int]:
    """Return where lines begin, as ``seek`` takes it."""
    file.seek(0)
    starts: list[int] = []
    while True:
        begin = file.tell()
        if not file.readline():
            return starts
        starts.append(begin)
