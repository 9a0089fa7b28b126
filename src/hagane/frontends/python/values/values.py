"""Values of the interpreted program.

Python's own objects stand for themselves where they are known: numbers, strings, tuples, None.
A size is an ``int`` or an ``Expr``. Kinds that only exist in the interpreted program have a class
here; objects that can change are references, whose content lies in the heap (:mod:`.heap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.ops.builder import Interpreter
from hagane.ops.definition import Array
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import Term

Value: TypeAlias = Any  # any value of the interpreted program
_NOTHING: Mapping[str, Value] = {}


@dataclass(frozen=True, slots=True)
class Place:
    """An expression in a source file; lines and columns count from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """Where a tensor came from: a place, its text, and the tensors it was made of."""

    place: Place
    text: str
    sources: tuple[Tensor, ...] = ()


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of which the type is known.

    Attributes:
        dtype: Element type.
        shape: Sizes; None when not even the rank is known.
        kind: The class it has in the program: ``torch.Tensor``, ``numpy.ndarray``, ...
        value: The graph value it stands for.
        interpreter: Gives operators on it a meaning.
        known: Its content, if that is known and small; object arrays hold sizes.
        device: ``cpu``, ``cuda:0``, ...; empty if unknown.
        origin: The expression it came from.
        parameter: Whether it is a trained parameter.
        strides: The distance of neighbours along each axis in memory, in elements; None if they
            lie there in the order of the axes, without gaps.
    """

    dtype: ir.DataType
    shape: Shape | None
    kind: str
    value: ir.Value
    interpreter: Interpreter
    known: Array | None = None
    device: str = "cpu"
    origin: Origin | None = None
    parameter: bool = False
    strides: tuple[Dim, ...] | None = None

    def __post_init__(self) -> None:
        self.hold()

    def hold(self) -> None:
        """Note that the content is known until the memory is written, where programs have types."""
        if self.known is not None and (writes := getattr(self.interpreter, "writes", None)):
            writes.hold(self)

    def seen_as(self, kind: str) -> Tensor:
        """Return the same value as an object of another class, such as ``numpy.ndarray``."""
        self.hold()
        return replace(self, kind=kind, parameter=False)

    @property
    def known_only(self) -> bool:
        """Whether this is a number of the program that stands where a tensor is expected."""
        return self.known is not None and self.origin is None and self.value.producer() is None

    @property
    def rank(self) -> int:
        """The number of axes of a tensor whose shape is known."""
        assert self.shape is not None
        return len(self.shape)


Kinds: TypeAlias = frozenset[ir.DataType | type]


@dataclass(frozen=True, slots=True)
class Real:
    """A float that is not known: the formula of sizes or the tensor that it is, if there is one.

    Attributes:
        also: What it is on other paths that the data decide: an element type of NumPy's scalars, or
            Python's ``int``.
    """

    formula: Expr | None = None
    tensor: Tensor | None = None
    also: Kinds = frozenset()


@dataclass(frozen=True, slots=True)
class Truth:
    """A truth value that depends on sizes, or on unknown values."""

    term: Term


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A value that the interpreter lost; ``told`` if the reader knows why already.

    ``failed`` where an error was reported: other paths are followed on without it.
    """

    reason: str
    told: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Unset(Unknown):
    """An attribute that is not there, and that the program may set on one of several paths.

    Attributes:
        asked: Is filled where the program asks whether it is there.
    """

    asked: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Absent(Unknown):
    """What stands for an attribute on the paths that did not set it, beside its value on others."""


@dataclass(frozen=True, slots=True, eq=False)
class Doubtful(Unknown):
    """A name's value at the start of an iteration: of another type in the first one than later."""


@dataclass(frozen=True, slots=True, eq=False)
class Outside(Unknown):
    """A value from outside of the program, such as a text of a file: told of where it matters."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """``yes`` where ``condition`` holds, else ``no``: values too different to be joined."""

    condition: Term
    yes: Value
    no: Value


def alternatives(value: Value) -> list[Value]:
    """Return the values of which one stands there: those of a choice, else the value alone."""
    if isinstance(value, Choice):
        return [*alternatives(value.yes), *alternatives(value.no)]
    return [value]


def may_be_absent(value: Value) -> bool:
    """Whether a value is that of an attribute which some paths did not set."""
    if isinstance(value, Choice):
        return may_be_absent(value.yes) or may_be_absent(value.no)
    return isinstance(value, Absent)


@dataclass(frozen=True, slots=True)
class DType:
    """An element type as a value: ``torch.float32``, ``np.int64``."""

    dtype: ir.DataType
    library: str = "torch"


@dataclass(frozen=True, slots=True)
class Device:
    """A device as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Library:
    """A name of a library that the checker knows by its own tables: ``torch.nn.functional``."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class LibraryMethod:
    """A method of a library's object: ``x.view``."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method of one of Python's own containers, or of a string."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A real object of the running Python: a module, a function, an object with attributes."""

    object: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)


@dataclass(frozen=True, slots=True, eq=False)
class Ref:
    """An object that can change; ``key`` finds its content in the heap."""

    key: int


@dataclass(frozen=True, slots=True, eq=False)
class ListRef(Ref):
    """A list; content: a tuple of values, or ``Many``."""


@dataclass(frozen=True, slots=True, eq=False)
class DictRef(Ref):
    """A dictionary; content: a ``dict`` with known keys, or ``Many``."""

    kind: str = "dict"


@dataclass(frozen=True, slots=True, eq=False)
class SetRef(Ref):
    """A set of known values; content: a tuple without repeats."""

    frozen: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """Content of a list whose length depends on sizes: ``length`` values like ``element``.

    ``at`` gives the item of a position, where items follow a rule; ``stacked`` is a tensor of them
    all, where there is one, of no kind where they are numbers, and ``also`` has the types that
    numbers among them may have besides. ``uneven`` has tensors whose sizes differ; ``table`` makes
    one tensor of items that are lists and tuples of numbers or tensors of one shape, if they are.
    """

    element: Value
    length: Dim
    at: Callable[[Dim], Value] | None = None
    stacked: Tensor | None = None
    also: Kinds = frozenset()
    uneven: Any = None
    table: Callable[[], Tensor | None] | None = None

    def item(self, position: Dim) -> Value:
        """Return the item at a position."""
        return self.element if self.at is None else self.at(position)


@dataclass(frozen=True, slots=True, eq=False)
class Endless(Many):
    """Content of an iterator without an end, such as that of ``itertools.cycle``."""


@dataclass(frozen=True, slots=True, eq=False)
class Advancing:
    """Content of an iterator of which the data may decide how many items were taken.

    ``items`` are those of the whole; the object ``taken`` has the number of those taken.
    """

    items: tuple[Value, ...] | Many
    taken: int


@dataclass(frozen=True, slots=True, eq=False)
class Pairs(Many):
    """Content of a dictionary of a number of keys that is not known: all like ``key``."""

    key: Value = None


@dataclass(frozen=True, slots=True, eq=False)
class Earlier(Unknown):
    """The items that earlier iterations appended to a list; ``count`` of them."""

    count: Dim = 0


@dataclass(frozen=True, slots=True)
class Range:
    """``range`` with bounds that depend on sizes."""

    start: Dim
    stop: Dim
    step: Dim


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """An iterator; content in the heap: the values still to come, as a tuple or ``Many``."""

    key: int


class Fields(tuple[Value, ...]):
    """A tuple whose items have names, such as the result of ``torch.max``.

    Attributes:
        names: The names.
        real: The class of the running Python that such a tuple has; None if nobody told it.
    """

    names: tuple[str, ...]
    real: type | None

    def __new__(
        cls, items: Iterable[Value], names: tuple[str, ...], real: type | None = None
    ) -> Fields:
        """Return the tuple of ``items``."""
        made = super().__new__(cls, items)
        made.names, made.real = names, real
        return made

    def of(self, items: Iterable[Value]) -> Fields:
        """Return a tuple of other items with these names."""
        return Fields(items, self.names, self.real)


MISSING = object()


def is_size(value: Value) -> bool:
    """Whether ``value`` is an integer, known or not; truth values count as Python counts them."""
    return isinstance(value, int | Expr)


def is_plain(value: Value) -> bool:
    """Whether ``value`` and all its parts are known Python values."""
    if isinstance(value, tuple | frozenset):
        return all(is_plain(item) for item in value)
    if isinstance(value, slice):
        return is_plain((value.start, value.stop, value.step))
    plain = int | float | complex | str | bytes | type(Ellipsis) | range
    return value is None or isinstance(value, plain)
