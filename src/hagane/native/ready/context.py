"""Memory and tables of one run at a time of a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from hagane.errors import KernelError
from hagane.native.ready.mapped import Engine
from hagane.native.ready.rows import PartTable

if TYPE_CHECKING:
    from hagane.native.ready.outputs import OutputPool

# The share of a run's estimated time that clearing borders may take, if not the engine's own.
CLEARING: float | None = None
# The engine's answers on sizes: HG_FITS and so on.
FITS, MISMATCH, BEYOND, NO_MEMORY = range(4)
# The meaning of a failure that the reference kernel explains: the nodes are computed by it instead.
BY_REFERENCE = "the reference kernel says why"


class ShapeMismatch(Exception):
    """Arrays of other shapes than the part was compiled for."""


class Refused(Exception):
    """Data beyond the kernels; the reference kernels compute them, or name the fault."""


class Fitted:
    """A context of the engine: memory and tables of one run at a time.

    Args:
        engine: The engine.
        table: The part; kept.
        threads: How many threads a run uses at most.
    """

    def __init__(self, engine: Engine, table: PartTable, threads: int):
        self.engine, self.table = engine, table
        self.address: int = engine.open(table.address, None, threads, None) or 0
        if not self.address:
            raise MemoryError("the tables of a compiled model")
        if CLEARING is not None:
            engine.clear_more(self.address, CLEARING)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.engine.close(self.address)

    def fit(self, shapes: Sequence[Sequence[int]]) -> int:
        """Make the tables those for the shapes of inputs; return ``FITS`` if they can be."""
        flat = np.array([*(size for shape in shapes for size in shape), 0], np.int64)
        return int(self.engine.fit(self.address, flat.ctypes.data))

    def tell(self) -> tuple[int, ...]:
        """Return the figures of ``hg_tell``."""
        found = np.zeros(8, np.int64)
        self.engine.tell(self.address, found.ctypes.data)
        return tuple(map(int, found))

    def sizes(self) -> dict[str, int]:
        """Return the named sizes that the inputs have told, and first values of changing ones."""
        names = self.table.rows.names
        numbers = np.zeros(len(names) + 1, np.int64)
        self.engine.list(self.address, numbers.ctypes.data, len(names), None, None, None)
        return dict(zip(names, map(int, numbers), strict=False))


class Failing(Protocol):
    """A kernel, as its failures need it."""

    @property
    def label(self) -> str:
        """The nodes that it computes."""

    @property
    def failure(self) -> str:
        """What its failure says, with places for sizes."""

    @property
    def failure_sizes(self) -> Sequence[Any]:
        """These sizes."""


class Ready(Protocol):
    """A part, as runs in C need it."""

    @property
    def engine(self) -> Engine:
        """The engine."""

    @property
    def table(self) -> PartTable:
        """Its tables."""

    @property
    def threads(self) -> int:
        """How many threads a run uses at most."""

    @property
    def kernels(self) -> Sequence[Failing]:
        """Its kernels, in order."""

    @property
    def takes(self) -> Sequence[tuple[int, np.dtype[Any]]]:
        """The number of axes and the element type of each input."""

    @property
    def gives(self) -> Sequence[np.dtype[Any]]:
        """The element type of each output."""

    @property
    def is_endless(self) -> bool:
        """Whether a run may take any time."""

    @property
    def pool(self) -> OutputPool:
        """Memory of results."""


class Context:
    """Memory and call tables for one run at a time, at given shapes.

    Args:
        segment: The part.
        shapes: Of its inputs.

    Raises:
        ShapeMismatch: The part is not for such shapes.
        MemoryError: There is no memory for its values.
    """

    def __init__(self, segment: Ready, shapes: tuple[tuple[int, ...], ...]):
        self.segment = segment
        self.fitted = Fitted(segment.engine, segment.table, segment.threads)
        self.fit(shapes)

    def fit(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        """Make the tables those for other shapes; memory is kept where it suffices.

        Raises:
            ShapeMismatch: The part is not for such shapes.
            MemoryError: There is no memory for its values.
        """
        self.shapes: tuple[tuple[int, ...], ...] | None = (
            None  # the sizes that it was last made for here
        )
        code = self.fitted.fit(shapes)
        if code == MISMATCH:
            raise ShapeMismatch
        if code != FITS:
            wanted = self.fitted.tell()[6]
            raise MemoryError(f"{wanted} bytes for a model's values")
        self.shapes = shapes

    def holds(self, shapes: tuple[tuple[int, ...], ...]) -> bool:
        """Whether the tables are those for some shapes; the way in C may have changed them."""
        sizes = [size for shape in shapes for size in shape]
        found = np.zeros(len(sizes) + 1, np.int64)
        self.segment.engine.shapes(self.fitted.address, found.ctypes.data)
        return bool(sizes == found[:-1].tolist())

    @property
    def program(self) -> int:
        """Where the engine's program lies."""
        return self.fitted.tell()[0]

    @property
    def bytes(self) -> int:
        """The memory for values."""
        return self.fitted.tell()[2]

    def fail(self, index: int) -> NoReturn:
        """Raise the error that a kernel noted.

        Raises:
            KernelError: The data are at fault.
            Refused: The reference kernel says whether they are.
        """
        kernel = self.segment.kernels[index]
        if kernel.failure == BY_REFERENCE:
            raise Refused(kernel.label)
        engine = self.segment.engine
        value = engine.failure_value(self.program)
        sizes = np.zeros(len(kernel.failure_sizes) + 1, np.int64)
        if not engine.failed(self.fitted.address, index, sizes.ctypes.data):
            raise MemoryError("the tables of a compiled model")
        found = map(int, sizes[:-1])
        raise KernelError(f"{kernel.label} failed: {kernel.failure.format(*found, value=value)}")
