"""The outputs of a graph as a program's result, its arguments as inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Sized(tuple[Any, ...]):
    """The sizes in a ``torch.Size``: numbers, leaves, examples."""

    __slots__ = ()


class Queued(list[Any]):
    """The items of a deque: leaves and known values.

    Attributes:
        most: The most items that it takes, None if any number.
    """

    def __init__(self, items: Iterable[Any], most: int | None):
        super().__init__(items)
        self.most = most


@dataclass(frozen=True, slots=True)
class Leaf:
    """An output of the graph.

    Attributes:
        name: Its name.
        kind: Its form in the program: the class of a tensor, or ``int``, ``float``, ``bool``, or
            ``range`` or ``numbers``, a list, whose numbers they are; ``numpy.generic`` for a
            scalar of NumPy; ``complex `` in front of it where a last axis holds the two parts.
        first: The name of the first output that is this very tensor; its own for that one.
        path: The path of the argument that it is, empty if it is none.
        held: The tensor of the running Python that it is, outside of the arguments; else None.
        is_parameter: Whether it is a parameter that the call made.
    """

    name: str
    kind: str
    first: str = ""
    path: str = ""
    held: Any = field(default=None, compare=False, repr=False)
    is_parameter: bool = False

    @property
    def is_found(self) -> bool:
        """Whether it is a tensor that was there before, or is there more than once."""
        return bool(self.path) or self.held is not None or self.first != self.name


@dataclass(frozen=True, slots=True)
class Column:
    """The tensors or numbers of a list whose length the data decide, in one or two outputs.

    Attributes:
        values: They lie along a new first axis; where their sizes differ, behind each other.
        sizes: How large each is along this axis, where they differ.
        axis: The axis along which they lie behind each other.
        inner: The kind of the numbers of which each is a list; empty for tensors and numbers.
    """

    values: Leaf
    sizes: Leaf | None = None
    axis: int = 0
    inner: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list whose length the data decide: the structure of an item, whose leaves are columns.

    Attributes:
        item: It.
        is_tuple: Whether it is a tuple.
    """

    item: Any
    is_tuple: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A plain value that the program returns."""

    value: Any


@dataclass(frozen=True, slots=True)
class Record:
    """An object with fields that the program returns.

    Attributes:
        cls: Its real class; None where it has none.
        fields: Structures of its fields.
        is_tuple: Whether it is a tuple whose items have names.
    """

    cls: type | None
    fields: Mapping[str, Any]
    is_tuple: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """An object that the program made and returns, of a class whose fields are not declared.

    Attributes:
        cls: Its real class; None where it has none.
        attributes: Structures of its attributes.
        items: The structure of its items, where it is a dict or list too; else None.
    """

    cls: type | None
    attributes: Mapping[str, Any]
    items: Any = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a returned object that is no value: a bound method, a name of a library.

    Attributes:
        shown: It in words.
    """

    shown: str


@dataclass(frozen=True, slots=True)
class Example:
    """The type of an example that was given for an argument, or for a part of one.

    Attributes:
        text: The type.
        kind: The class of a tensor, empty if it is none.
        is_array: Whether it is an array of NumPy, not a scalar of it, which nothing changes.
    """

    text: str
    kind: str = ""
    is_array: bool = False


@dataclass(slots=True, eq=False)
class Object:
    """An object that is an argument or a part of one: its parts are known, no tensor is.

    Attributes:
        cls: Its class.
        real: It.
        attributes: Contents of its attributes: examples, known values, objects.
        items: Its items, where it is a list or dict too; else None.
    """

    cls: type
    real: Any
    attributes: dict[str, Any] = field(default_factory=dict)
    items: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A value that the graph takes for known as a whole: a module, a function, a class."""

    value: Any


class Same:
    """An object as a key, which is equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Handed:
    """A mutable argument, or a part of one, that the program returns or puts into another one.

    Attributes:
        path: Its path in the arguments.
        parts: The structure of its content, where that is made of outputs.
    """

    path: str
    parts: Any = None


@dataclass(frozen=True, slots=True)
class Kept:
    """An unchanged item or attribute of an argument.

    Attributes:
        key: Its key or index before the call.
    """

    key: Any


@dataclass(frozen=True, slots=True)
class Change:
    """The new content of an argument that a call changes, or of a part of one.

    Attributes:
        path: Its path in the arguments.
        attributes: Structures of the attributes that differ; None for deleted ones.
        items: The structure of its items, where these differ.
        written: Names of outputs by the paths of the tensors whose memory was written.
    """

    path: str
    attributes: Mapping[str, Any]
    items: Any = None
    written: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is an argument, not the type of one."""

    value: str


__all__ = [
    "Change",
    "Column",
    "Constant",
    "Example",
    "Handed",
    "Kept",
    "Leaf",
    "Made",
    "Object",
    "Opaque",
    "Queued",
    "Record",
    "Sized",
    "Text",
    "Whole",
]  # fmt: skip
