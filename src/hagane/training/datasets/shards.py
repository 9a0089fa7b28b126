"""Tar archives whose neighbouring files of one name are one sample (the webdataset layout)."""

from __future__ import annotations

import glob
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hagane.training.datasets.base import DatasetMixin, PerProcess
from hagane.training.datasets.images import read_image
from hagane.training.errors import DatasetError

Decoder = Callable[[bytes], Any]


def _image(data: bytes) -> Any:
    return read_image(io.BytesIO(data), np.uint8, "a picture of a shard")


def _text(data: bytes) -> str:
    return data.decode("utf-8")


def _integer(data: bytes) -> int:
    return int(data)


def _array(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False)


# By the last part of a file's name; other kinds stay bytes.
DECODERS: Mapping[str, Decoder] = {
    "cls": _integer,
    "id": _text,
    "jpeg": _image,
    "jpg": _image,
    "json": json.loads,
    "npy": _array,
    "png": _image,
    "ppm": _image,
    "txt": _text,
    "webp": _image,
}


class TarShardDataset(DatasetMixin):
    """Samples of tar archives, read at random without unpacking.

    Files whose names are equal up to the first dot after the last slash make one sample: a dict
    with ``__key__`` and one entry for each extension. The archives' headers are read once.

    Args:
        shards: Paths, a path, or a pattern such as ``train-*.tar``. Archives must not be
            compressed, for a compressed one has no random access.
        decoders: Called with a file's bytes, by extension; they come before the usual ones,
            which know pictures (uint8, channels first), JSON, text, ``cls`` and ``npy``.
        keys: Extensions to read; None is all of them.

    Raises:
        DatasetError: No archive matches, or one cannot be read.
    """

    def __init__(
        self,
        shards: str | Path | Sequence[str | Path],
        decoders: Mapping[str, Decoder] | None = None,
        keys: Sequence[str] | None = None,
    ):
        self._paths = _matching(shards)
        self._decoders = {**DECODERS, **(decoders or {})}
        self._keys = None if keys is None else frozenset(keys)
        self._files = [PerProcess(partial(_open, path)) for path in self._paths]
        self._samples: list[tuple[int, str, tuple[tuple[str, int, int], ...]]] = []
        for number, path in enumerate(self._paths):
            self._samples.extend(_index(number, path, self._keys))

    def __len__(self) -> int:
        return len(self._samples)

    def get_example(self, i: int) -> dict[str, Any]:
        """Return the sample's files, decoded, by extension."""
        shard, key, members = self._samples[i]
        file = self._files[shard].get()
        sample: dict[str, Any] = {"__key__": key}
        for extension, offset, size in members:
            file.seek(offset)
            data = file.read(size)
            decode = self._decoders.get(extension.rpartition(".")[2].lower())
            try:
                sample[extension] = data if decode is None else decode(data)
            except Exception as error:
                raise DatasetError(
                    f"{self._paths[shard]}: cannot decode '{key}.{extension}': {error}"
                ) from error
        return sample


def _open(path: str) -> BinaryIO:
    return open(path, "rb")


def _matching(shards: Any) -> list[str]:
    given = [shards] if isinstance(shards, str | Path) else list(shards)
    paths: list[str] = []
    for each in [os.fspath(path) for path in given]:
        found = sorted(glob.glob(each)) if glob.has_magic(each) else [each]
        paths.extend(path for path in found if os.path.isfile(path))
        if not any(os.path.isfile(path) for path in found):
            raise DatasetError(f"TarShardDataset: there is no archive '{each}'")
    return paths


def _index(number: int, path: str, keys: frozenset[str] | None) -> list[Any]:
    samples: list[tuple[int, str, tuple[tuple[str, int, int], ...]]] = []
    current: str | None = None
    members: list[tuple[str, int, int]] = []
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isfile():
                    continue
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                key = f"{folder}/{stem}" if folder else stem
                if key != current:
                    if current is not None and members:
                        samples.append((number, current, tuple(members)))
                    current, members = key, []
                if keys is None or extension in keys:
                    members.append((extension, member.offset_data, member.size))
    except tarfile.TarError as error:
        raise DatasetError(
            f"TarShardDataset: '{path}' is no uncompressed tar archive: {error}"
        ) from error
    if current is not None and members:
        samples.append((number, current, tuple(members)))
    return samples
