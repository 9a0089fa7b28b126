"""What a program is made of: frames, modules, functions, classes and their objects."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hagane.frontends.python.values.values import (
    Device,
    DType,
    Host,
    Library,
    Place,
    Ref,
    Value,
    is_plain,
)


@dataclass(eq=False, slots=True)
class Frame:
    """One activation of a function, a class body or a module; names lie in the heap.

    Attributes:
        key: Finds the names in the heap.
        file: The source file.
        module: The module whose names are global here.
        parent: The enclosing scope for names, None at module level.
        is_user: Whether expressions here belong in the report.
        outer: Names declared ``global`` or ``nonlocal``.
        exits: How the activation ended so far.
        function: The function that runs, None for a module.
        call: The place of the call.
        caller: The calling frame.
        resume: Runs the body of a ``with`` where the generator behind it yields.
        cls: The class whose body runs.
        kept: Whether a function or class made in it may read its names after it ends.
        made: The last values of its expressions, by node, where a graph is made.
        decisions: The number of open conditions that had been decided when it was called.
        given: The arguments of the call.
        cell: The name of the one variable of a real function's enclosing scope that lies here.
    """

    key: int
    file: str
    module: ModuleRef
    parent: Frame | None
    is_user: bool
    is_class: bool = False
    outer: dict[str, str] = field(default_factory=dict)
    exits: list[Any] = field(default_factory=list)
    function: Function | None = None
    receiver: Value = None
    call: Place | None = None
    caller: Frame | None = None
    resume: Callable[[Value], None] | None = None
    cls: Class | None = None
    kept: bool = False
    made: dict[Any, Value] = field(default_factory=dict)
    decisions: int = 0
    given: tuple[Value, ...] = ()
    cell: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleRef(Ref):
    """A module that is interpreted from its source; content: its names.

    ``host`` is the real module's namespace where it was imported.
    """

    name: str
    file: str
    host: Mapping[str, Any] = field(default_factory=dict)
    is_user: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the program; ``host`` is the real one where it was imported."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    name: str
    scope: Frame
    defaults: tuple[Value, ...] = ()
    keyword_defaults: Mapping[str, Value] = field(default_factory=dict)
    owner: Class | None = None
    host: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The ``__init__`` that a dataclass makes."""

    cls: Class


@dataclass(frozen=True, slots=True, eq=False)
class Managed:
    """A context manager made of a generator: a call of a ``@contextmanager`` function."""

    function: Value
    arguments: tuple[Value, ...]
    keywords: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A function with its first argument."""

    function: Value
    receiver: Value


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped:
    """A function under ``property``, ``staticmethod``, ``classmethod`` or ``functools.partial``.

    Of kind ``within``, it runs within the context manager that is its only argument.
    """

    kind: str
    function: Value
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Class(Ref):
    """A class of the program; content: its names.

    ``fields`` are those of a dataclass, ``settings`` what is said of them beside the default;
    ``host`` is the real class where it was imported.
    """

    name: str
    bases: tuple[Value, ...]
    module: ModuleRef
    fields: list[tuple[str, Value]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    host: Any = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """An attribute of an object that is computed each time that it is read."""

    compute: Callable[[], Value]


@dataclass(frozen=True, slots=True, eq=False)
class Instance(Ref):
    """An object of a class of the program or of a library's; content: its attributes.

    ``host`` is the real object behind it, whose attributes are read when they are asked for.
    """

    cls: Class | Library
    host: Any = None

    @property
    def cls_flags(self) -> frozenset[str]:
        """The flags of its class and of the bases of that."""
        found: set[str] = set()
        pending: list[Any] = [self.cls]
        while pending:
            cls = pending.pop()
            if isinstance(cls, Class):
                found |= cls.flags
                pending += cls.bases
        return frozenset(found)


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """``super()``: attributes of ``receiver`` that classes after ``start`` define."""

    start: Class
    receiver: Value


def is_enumeration(cls: Class) -> bool:
    """Tell whether a class is an enumeration, whose calls and items give its members."""
    return "enum" in cls.flags or isinstance(cls.host, enum.EnumMeta)


def is_flag(cls: Value) -> bool:
    """Whether a class of the program is an enumeration of flags that are no numbers."""
    real = cls.host if isinstance(cls, Class) else None
    is_real = isinstance(real, type) and issubclass(real, enum.Flag) and not issubclass(real, int)
    return is_real or (isinstance(cls, Class) and "flag" in cls.flags)


def is_configuration(cls: Any) -> bool:
    """Whether a real class of an installed package holds settings alone, by its name."""
    return isinstance(cls, type) and cls.__name__.endswith("Config")


def names_of_tuple(value: Value) -> list[str] | None:
    """Return the names of a named tuple's items in order; None for other values."""
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        return [n for n, _ in value.cls.fields] if "named tuple" in value.cls.flags else None
    return None


def is_compared_by_value(value: Value) -> bool:
    """Tell whether an object of the program equals others that are not itself."""
    return isinstance(value, Instance) and "by value" in value.cls_flags


def is_key(value: Value) -> bool:
    """Whether a value may be a key of a dictionary whose keys are known."""
    # Objects of the program are keys by identity, as Python has it without __eq__.
    if isinstance(value, tuple):
        return all(map(is_key, value))
    if is_compared_by_value(value):
        return False
    named = Instance | Function | Library | Host | Class | DType | Device
    return is_plain(value) or isinstance(value, named)
