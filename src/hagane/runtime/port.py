"""The port between the runtime and the backends that compute parts of a graph.

A backend says which nodes it takes (``claims``) and makes parts of them (``plan``). The runtime
groups the nodes of a graph by backend, in order of preference, moves values between devices, runs
the parts in order and asks them for memory and times. ``docs/backends.md`` tells the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hagane.runtime.device import CPU, Device, Value

if TYPE_CHECKING:
    import onnx_ir as ir

    from hagane.ops.definition import Array, RuntimeValue
    from hagane.ops.inference import GraphTypes

# From a feed by name straight to a model's outputs, or None for a feed that does not fit.


class ShapeMismatch(Exception):
    """Values of shapes or types that a part was not made for; nothing was computed."""


class SizesUnknown(Exception):
    """Some backend would take a node if all sizes of the model's inputs were numbers."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a backend does not compute a node that it claimed.

    Attributes:
        reason: For the user.
        needs_sizes: Whether it takes the node once all sizes of the inputs are numbers.
    """

    reason: str
    needs_sizes: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of one kernel in one run.

    Attributes:
        operator: Operators that it computes, joined by ``+``.
        name: Name of the first of its nodes; empty if they have none.
        nanoseconds: Time of all its runs together.
        flops: Floating-point operations of all its runs, 0 where they are not counted.
        place: Where in a program's source its first node came from; empty if that is not known.
    """

    operator: str
    name: str
    nanoseconds: int
    flops: float = 0.0
    place: str = ""


class Observer(Protocol):
    """Told of each part of a run; may end the run by an exception."""

    @property
    def stop(self) -> Array | None:
        """One number that becomes 1 when loops shall make no other turn, if anything may do so."""

    def __call__(
        self,
        part: Part,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        records: Sequence[Timed],
    ) -> None:
        """Take note of a part that ended, and of the times of its kernels; may raise."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A run that is observed.

    Attributes:
        observer: Handed on to the bodies that a part runs.
        records: A part appends the time of each of its kernels; the runtime measures the part as
            a whole if there are none.
    """

    observer: Observer
    records: list[Timed] = field(default_factory=list)


class Function(Protocol):
    """A body of a node, compiled by all backends."""

    @property
    def captured(self) -> tuple[ir.Value, ...]:
        """The values of outer graphs that it reads."""

    def bind(self, captured: Sequence[RuntimeValue], watch: Watch | None) -> Bound:
        """Return the body as a function of its inputs alone."""


class Bound(Protocol):
    """A body with the values that it captures."""

    def __call__(self, *inputs: RuntimeValue) -> list[RuntimeValue]:
        """Return the outputs of the body."""

    def nothing(self, index: int) -> Array:
        """Return no tensors of an output, stacked: the result of a loop without turns."""


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes of one graph that one backend is to compute together.

    Attributes:
        graph: The graph or body that they belong to.
        nodes: In order; none reads a value that depends on nodes outside which depend on others.
        outputs: The values of these nodes that others read, those of the graph included.
        types: Types and shapes of all values.
        constants: Arrays of initializers, of constants of outer graphs, and of values that follow
            from these.
        function: Compiles a body of one of the nodes.
    """

    graph: ir.Graph
    nodes: tuple[ir.Node, ...]
    outputs: frozenset[ir.Value]
    types: GraphTypes
    constants: Mapping[ir.Value, Array]
    function: Callable[[ir.Graph], Function]


class Part:
    """Nodes that run as one; backends make their own by inheritance.

    Attributes:
        backend: The name of the backend that made it.
        device: The place of the values that it reads and writes.
        nodes: The nodes that it computes.
        inputs: The arguments of ``run``, in order; None for an input that is absent.
        outputs: The results of ``run``, in order.
        varies: Whether ``run`` may raise ``ShapeMismatch``; the reference kernels then step in.
        bodies: Bodies of its nodes that other parts compute.
    """

    backend: str
    device: Device = CPU
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value | None, ...]
    outputs: tuple[ir.Value, ...]
    varies: bool = False
    bodies: tuple[Function, ...] = ()

    def open(self, settle: Callable[[], None]) -> None:
        """Make ready to run: compile, load weights. Called once, before the first run.

        Args:
            settle: Called now and then while weights are copied, to let go of pages of the
                model's file.

        Raises:
            NoCompiler: The part cannot be compiled on this machine.
        """

    def run(self, values: Sequence[Value], watch: Watch | None = None) -> list[Value]:
        """Return the outputs; may be called by several threads at once.

        Raises:
            ShapeMismatch: The part was not made for such values; only where it ``varies``.
            KernelError: A node failed; the message names it.
        """
        raise NotImplementedError

    def direct(self) -> Callable[[list[Value]], list[Value] | None] | None:
        """Return a faster ``run``, once the part is open; None where there is none.

        It returns None for values that ``run`` has to take.
        """
        return None

    def memory(self, sizes: Mapping[str, int]) -> Memory:
        """Return the memory that runs need.

        Args:
            sizes: Named dimensions of the model's inputs.
        """
        return Memory(0, 0)

    def frame(
        self,
        arrays: Sequence[Array],
        own: Sequence[int],
        order: Sequence[int],
        owner: object,
        full: bool,
        lease: int,
        *,
        general: bool,
    ) -> tuple[Any, ...] | None:
        """Return the short way from arrays of some shapes to outputs, or None where there is none.

        Args:
            arrays: The inputs of the session.
            own: Which of them are those of the part.
            order: Which outputs to return, in order.
            owner: Of a short way whose memory may be taken, or None.
            full: Whether it must be.
            lease: For how many runs it is not asked for again; for all if 0.
            general: Whether the part is for all shapes.
        """
        return None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that parts take.

    Attributes:
        weights: Weights in the form that kernels read.
        values: All that one run at a time computes on its way; inputs and outputs left out.
    """

    weights: int
    values: int

    @property
    def peak(self) -> int:
        """Bytes in all; inputs and outputs belong to the caller."""
        return self.weights + self.values


@dataclass(frozen=True, slots=True)
class Planned:
    """A backend's part of a region.

    Attributes:
        parts: In order of execution; together they compute the region unless nodes are refused.
        refused: Nodes that go to the next backend after all; the rest is planned anew then.
    """

    parts: tuple[Part, ...]
    refused: Mapping[ir.Node, Refusal] = field(default_factory=dict)


class Backend(Protocol):
    """Makes parts of graphs."""

    @property
    def name(self) -> str:
        """A short name for reports and profiles, such as ``native``."""

    @property
    def provider(self) -> str:
        """The name in ``InferenceSession.get_providers``, such as ``CPUExecutionProvider``."""

    @property
    def device(self) -> Device:
        """The place of the values of its parts."""

    def adapt(self, graph: ir.Graph, types: GraphTypes) -> Backend:
        """Return the backend that plans a graph, once the passes are through.

        The graph may be rewritten into forms that the backend computes, its layers be measured.
        Types of new values go into ``types``.
        """

    def claims(self, node: ir.Node, types: GraphTypes) -> bool:
        """Whether the backend may take a node, as far as its operator and types tell."""

    def late(self, node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
        """Return outputs of a node that no other node of the same part may read."""

    def plan(self, region: Region) -> Planned:
        """Return parts for a region of claimed nodes; nothing is compiled yet."""
