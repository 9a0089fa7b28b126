"""A part in a folder of the cache: numbers, code and packed weights as runs in C need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hagane.machine import cpu_features
from hagane.machine.cache import is_whole
from hagane.native.ready.mapped import Mapped, open_engine, open_library
from hagane.native.ready.outputs import OutputPool
from hagane.native.ready.rows import ARRAYS, PartRows, PartTable

if TYPE_CHECKING:
    from hagane.native.ready.mapped import WeightStore

# Changes whenever the numbers, or those of the engine, mean something else.
VERSION = 5
CODE, WEIGHTS = "kernels.so", "weights"


class Label(NamedTuple):
    """A kernel's name, and what its failure says."""

    label: str
    failure: str
    failure_sizes: Sequence[None]


class ReadyPart:
    """A part whose code and packed weights are mapped from a folder.

    Args:
        folder: Where they lie.
        facts: What ``write_ready`` returned when it wrote the part.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any]):
        self.engine = open_engine(Path(facts["engine"]))
        self.library = open_library(folder / CODE)
        self._weights = Mapped(folder / WEIGHTS)
        self.threads = int(facts["threads"])
        self.is_endless = bool(facts["endless"])
        self.takes = [(int(rank), _dtype(name)) for rank, name in facts["takes"]]
        self.gives = [_dtype(name) for name in facts["gives"]]
        self.kernels = [
            Label(label, failure, [None] * sizes) for label, failure, sizes in facts["labels"]
        ]
        # (Only runs that Python leads ask for names.)
        rows = PartRows({}, (), (), (), (), (), facts["counts"], tuple(facts["growing"]))
        functions = [name and self.library.address(name) for name in facts["functions"]]
        arrays = {
            name: np.array(facts["arrays"][name], np.int64 if name == "constants" else np.int32)
            for name in ARRAYS
        }
        start = self._weights.address
        weights = [start + offset for offset in facts["weights"]]
        self.table = PartTable(rows, functions, weights, arrays)
        self.pool = OutputPool()
        self._marks: Sequence[tuple[str, int]] = facts["marks"]
        self._store: WeightStore | None = None

    @property
    def store(self) -> WeightStore:
        """The packed weights, for other programs of the model."""
        if self._store is None:
            from hagane.native.ready.mapped import Packed, WeightStore

            self._store = store = WeightStore()
            self._offered = [
                (mark, Packed(self._weights, self._weights.address + offset))
                for mark, offset in self._marks
            ]
            for mark, packed in self._offered:
                store.put(mark, packed)
        return self._store


def may_be_ready(facts: Mapping[str, Any]) -> bool:
    """Whether a part that was written can run here: its engine is there, the processor fits."""
    if not frozenset(facts["needs"]) <= cpu_features():
        return False
    return all(is_whole(Path(facts[name]).parent) for name in ("engine", "extension"))


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # noqa: F401  (it makes the names known)

        return np.dtype(name)
