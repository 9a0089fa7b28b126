"""A part in a folder of the cache: its plan, code and packed weights, as runs in C need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hagane.machine import cpu_features
from hagane.machine.cache import is_whole
from hagane.native.ready.mapped import Mapped, open_engine, open_library
from hagane.native.ready.outputs import OutputPool
from hagane.native.ready.rows import PartRows, PartTable

if TYPE_CHECKING:
    from hagane.native.ready.mapped import WeightStore
    from hagane.native.ready.plan_file import Plan, PlanPart

CODE, WEIGHTS, PLAN = "kernels.so", "weights", "plan"
# The columns of hgt_port and hgt_kernel that are read here.
_PORT, _TYPE, _RANK, _GROWS = 5, 1, 2, 4
_KERNEL, _FAILURE_SIZES = 11, 7


class Label(NamedTuple):
    """A kernel's name, and what its failure says."""

    label: str
    failure: str
    failure_sizes: Sequence[None]


class ReadyPart:
    """A part whose code and packed weights are mapped from a folder.

    Args:
        folder: Where they lie.
        plan: Of the folder, of a model that is one part.
        facts: What ``write_ready`` returned when it wrote them.
    """

    def __init__(self, folder: Path, plan: Plan, facts: Mapping[str, Any]):
        from hagane.native.ready.plan_file import type_name

        (part,) = plan.parts
        self.engine = open_engine(Path(facts["engine"]))
        self.library = open_library(folder / CODE)
        self._weights = Mapped(folder / WEIGHTS)
        self.threads = int(facts["threads"])
        self.is_endless = bool(facts["endless"])
        inputs, outputs = (_ports(part, name) for name in ("inputs", "outputs"))
        self.takes = [(int(port[_RANK]), _dtype(type_name(int(port[_TYPE])))) for port in inputs]
        self.gives = [_dtype(type_name(int(port[_TYPE]))) for port in outputs]
        n = part.counts["kernels"]
        failing = part.arrays["kernels"][_FAILURE_SIZES : n * _KERNEL : _KERNEL].tolist()
        self.kernels = [
            Label(label, failure, [None] * sizes)
            for label, failure, sizes in zip(part.labels, part.failures, failing, strict=True)
        ]
        # (Only runs that Python leads ask for names.)
        growing = tuple(bool(port[_GROWS]) for port in outputs)
        rows = PartRows({}, (), (), (), (), (), part.counts, growing)
        names = plan.functions
        functions = [i >= 0 and self.library.address(names[i]) for i in part.functions[:n].tolist()]
        weights = (part.weights[:-1] + self._weights.address).tolist()
        self.table = PartTable(rows, functions, weights, part.arrays)
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


def plan_of(folder: Path) -> Plan:
    """Return the plan in a folder.

    Raises:
        ValueError: It is of another version.
    """
    from hagane.native.ready.plan_file import read_plan  # new sessions do without

    return read_plan(np.fromfile(folder / PLAN, np.uint8))


def may_be_ready(facts: Mapping[str, Any]) -> bool:
    """Whether a part that was written can run here: its engine is there, the processor fits."""
    if not frozenset(facts["needs"]) <= cpu_features():
        return False
    return all(is_whole(Path(facts[name]).parent) for name in ("engine", "extension"))


def _ports(part: PlanPart, name: str) -> np.ndarray:
    return part.arrays[name][: part.counts[name] * _PORT].reshape(-1, _PORT)


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # noqa: F401  (it makes the names known)

        return np.dtype(name)
