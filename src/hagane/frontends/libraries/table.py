"""The table of one library: functions, methods, attributes, layers, constants."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, TypeVar

from hagane.errors import HaganeError
from hagane.frontends.libraries.names.ignored import WITHOUT_EFFECT
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import interpreting
from hagane.symbolic import Expr

Handler = Callable[..., Value]
# A context around a call, given its name and its arguments.
Around = Callable[[Core, str, Sequence[Value], Mapping[str, Value]], AbstractContextManager[None]]
# Makes a call, given its name, its arguments and what makes it.
Checked = Callable[[Core, str, Sequence[Value], Mapping[str, Value], Callable[[], Value]], Value]
_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

# Arguments of PyTorch and NumPy by names that no function of the tables has, though some are
# nearly called so.
_SELDOM = frozenset(
    ("allow_retain_graph", "arg", "aweights", "betas", "bound", "centered", "counter", "d_model",
     "datasets", "defaultfmt", "device_ids", "dropout", "factor", "filling_values", "from_", "func",
     "fweights", "iaxis", "identity", "kdim", "length", "mat", "max_momentum", "median", "mod",
     "modules", "n_classes", "nout", "num_embeddings", "num_parameters", "offsets", "out1", "out2",
     "output_dtype", "params", "range", "scale_a", "scale_b", "scales", "sci_mode", "sep", "shared",
     "sign", "state", "threshold", "tol", "type", "type1", "type2", "vdim", "vec1")
)  # fmt: skip


class View:
    """The attributes of a layer, for the function that describes a call."""

    def __init__(self, core: Core, instance: Instance):
        self.__dict__["_core"] = core
        self.__dict__["_instance"] = instance

    def __getattr__(self, name: str) -> Value:
        core: Core = self.__dict__["_core"]
        return core.unwrap_shallow(core.attribute(self.__dict__["_instance"], name))

    def __setattr__(self, name: str, value: Value) -> None:
        self.__dict__["_core"].heap[self.__dict__["_instance"]][name] = value

    def instance(self) -> Instance:
        """Return the object itself."""
        found: Instance = self.__dict__["_instance"]
        return found

    def get(self, name: str, default: Value) -> Value:
        """Return an attribute, or ``default`` where the object lacks it, as real ones may."""
        core: Core = self.__dict__["_core"]
        found = core.find_attribute(self.__dict__["_instance"], name)
        return default if found is MISSING else core.unwrap_shallow(found)

    def decided(self, run: Callable[[], Value]) -> Value:
        """Call a function for each alternative of the attributes: a state that may be None."""
        core, instance = self.__dict__["_core"], self.instance()
        for name, value in [*core.heap[instance].items()]:
            if isinstance(value, Choice):
                return core.either(value, lambda item, name=name: self._decide(name, item, run))
        return run()

    def _decide(self, name: str, item: Value, run: Callable[[], Value]) -> Value:
        setattr(self, name, item)
        return self.decided(run)

    def raw(self, name: str) -> Value:
        """Return an attribute as the program holds it; None if it is not set."""
        core: Core = self.__dict__["_core"]
        found = core.find_attribute(self.__dict__["_instance"], name)
        return None if found is MISSING else found


@dataclass
class Table:
    """The table of one library.

    Attributes:
        root: The name it is imported by.
        tensor: The class of its tensors.
        functions: The meaning of a function of that name: called with the interpreter, then the
            arguments.
        methods: The same for methods, by class; the receiver comes second.
        attributes: Attributes that are computed, by class.
        layers: Classes with ``init`` (the attributes of a new object) and ``forward``.
        constants: Names that stand for values.
        names: Names whose value the program can change: how it is read, and how it is set.
        transparent: Decorators and context managers that change no type.
        bases: Base classes: a class to the class whose methods it inherits.
        synonyms: Other names of an argument that functions of the library take: NumPy's.
        parameters: The names of a function's parameters that differ from its handler's, by the
            function's name; the handler's name follows each.
        strict: Functions, and modules of functions, that take no other names.
        fitting: A context around a call, which refuses one that the library's own parser of
            arguments would refuse.
        checked: Makes a call, unless the library's operators have no code for it.
        lay: Notes how the results of a call lie in memory: called with the interpreter, the name,
            the arguments, those by name, and what the call returned.
    """

    root: str
    tensor: str
    functions: dict[str, Handler] = field(default_factory=dict)
    methods: dict[str, dict[str, Handler]] = field(default_factory=dict)
    attributes: dict[str, dict[str, Handler]] = field(default_factory=dict)
    layers: dict[str, type] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    names: dict[str, tuple[Callable[[Core], Value], Callable[[Core, Value], None]]] = field(
        default_factory=dict
    )
    transparent: set[str] = field(default_factory=set)
    bases: dict[str, str] = field(default_factory=dict)
    synonyms: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Mapping[str, str]] = field(default_factory=dict)
    strict: set[str] = field(default_factory=set)
    operator: Callable[[Core, str, Value, Value], Value] | None = None
    unary: Callable[[Core, str, Tensor], Value] | None = None
    item: Callable[[Core, Tensor, Value], Value] | None = None
    set_item: Callable[[Core, Tensor, Value, Value], None] | None = None
    fitting: Around = lambda *_: nullcontext()
    checked: Checked = lambda core, name, arguments, keywords, run: run()
    lay: Callable[[Core, str, Sequence[Value], Mapping[str, Value], Value], None] = lambda *_: None

    def function(self, *names: str, methods: Sequence[str] = ()) -> Callable[[_F], _F]:
        """Register a function under names below the root, and as methods of tensors."""

        def add(function: _F) -> _F:
            for name in names:
                self.functions[f"{self.root}.{name}"] = function
            for name in methods:
                self.methods.setdefault(self.tensor, {})[name] = function
            return function

        return add

    def method(self, *names: str, of: str = "") -> Callable[[_F], _F]:
        """Register a method of tensors, or of another class."""

        def add(function: _F) -> _F:
            for name in names:
                self.methods.setdefault(of or self.tensor, {})[name] = function
            return function

        return add

    def attribute(self, *names: str, of: str = "") -> Callable[[_F], _F]:
        """Register a computed attribute of tensors, or of another class."""

        def add(function: _F) -> _F:
            for name in names:
                self.attributes.setdefault(of or self.tensor, {})[name] = function
            return function

        return add

    def outer_name(self, name: str) -> str:
        """Return the known name of a function or class named by the module that defines it.

        ``torch.nn.modules.conv.Conv2d`` is ``torch.nn.Conv2d``, ``chainer.variable.Variable`` is
        ``chainer.Variable``. Names that are known stay, and
        those of modules and classes that are known, which have no others.
        """
        known = (self.functions, self.layers, self.names, self.constants, self.transparent)
        short, last = name.rsplit(".", 1)
        while short != self.root:
            if any(f"{short}.{last}" in names for names in known):
                return f"{short}.{last}"
            if short in self._modules or short in self.layers:
                return name
            short = short.rpartition(".")[0]
        outer = f"{self.root}.{last}"
        is_class = last[:1].isupper() and any(outer in names for names in known)
        return outer if is_class else name

    def named(
        self,
        function: Handler,
        name: str,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> tuple[Sequence[Value], Mapping[str, Value]]:
        """Return the arguments of a call, named ones under the names that its handler has.

        The first one is by its place then: it may be a tensor that the call views or changes.
        """
        if not keywords:
            return arguments, keywords
        own = _signature(function).parameters
        several = next((p.name for p in own.values() if p.kind is p.VAR_POSITIONAL), None)
        first = next(itertools.islice(own, 1, None), None)
        moved = not arguments and first in keywords
        if several not in keywords and keywords.keys() <= own.keys() and not moved:
            return arguments, keywords
        known = {} if self._is_strict(name) else dict(self.synonyms)
        known |= self.parameters.get(name, {})
        left: dict[str, Value] = {}
        for key, value in keywords.items():
            other = key if key in own else known.get(key, f"{key}_")
            if other not in own:
                self._refuse_misspelt(name, key)
            left[other if other in own else key] = value
        if several in left:
            before = [*itertools.takewhile(lambda name: name != several, own)][1 + len(arguments) :]
            placed = [left.pop(name) for name in before if name in left]
            return [*arguments, *placed, left.pop(several)], left
        if not arguments and first in left and own[first].kind is not own[first].KEYWORD_ONLY:
            return [left.pop(first)], left
        return arguments, left

    def _refuse_misspelt(self, name: str, key: str) -> None:
        """Refuse an argument that no function of the library has, where one is called nearly so."""
        if key in self._names_of_arguments or key in WITHOUT_EFFECT or key in _SELDOM:
            return
        near = get_close_matches(key, self._names_of_arguments, 1, 0.8)
        if near:
            told = f"{name}() got an unexpected keyword argument '{key}'"
            raise CheckError("call", told, remedy=f"did you mean {near[0]}?")

    @cached_property
    def _names_of_arguments(self) -> frozenset[str]:
        """The names of the arguments of all functions, and those that other names stand for."""
        handlers = [*self.functions.values()]
        handlers += [method for methods in self.methods.values() for method in methods.values()]
        found = {name for handler in handlers for name in _signature(handler).parameters}
        more = {*self.synonyms, *(name for named in self.parameters.values() for name in named)}
        return frozenset({name.rstrip("_") for name in found if name.strip("_")} | more)

    def _is_strict(self, name: str) -> bool:
        return name in self.strict or name.rpartition(".")[0] in self.strict

    @cached_property
    def _modules(self) -> frozenset[str]:
        """The modules of functions and classes: asked for when all are registered."""
        return frozenset(name.rpartition(".")[0] for name in (*self.functions, *self.layers))

    def layer(self, *names: str, base: str = "") -> Callable[[_C], _C]:
        """Register a class with ``init`` and ``forward``; other functions in it are methods."""

        def add(cls: _C) -> _C:
            for name in names:
                self.layers[f"{self.root}.{name}"] = cls
                if base:
                    self.bases[f"{self.root}.{name}"] = base
            return cls

        return add


@cache
def _signature(function: Handler) -> inspect.Signature:
    return inspect.signature(function)


def arguments_of(function: Handler) -> dict[str, bool]:
    """Return the arguments that the program sees, and whether each has to be given."""
    parameters = [*_signature(function).parameters.values()][1:]
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {p.name: p.default is p.empty for p in parameters if p.kind in named}


def places_of(function: Handler) -> list[str]:
    """Return the names of the arguments that the program may give by place."""
    parameters = [*_signature(function).parameters.values()][1:]
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in itertools.takewhile(lambda p: p.kind in placed, parameters)]


def takes(function: Handler, name: str) -> bool:
    """Whether a function has an argument of a name, or any by name."""
    parameters = _signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def call_handler(
    function: Handler,
    name: str,
    core: Core,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    hidden: int = 1,
) -> Value:
    """Call a handler of a table; arguments that do not fit are the program's error.

    Args:
        function: The handler.
        name: Its name in the program.
        core: The interpreter, its first argument.
        arguments: Positional arguments of the program.
        keywords: Named arguments of the program.
        hidden: How many leading parameters the program does not see.
    """
    signature = _signature(function)
    try:
        signature.bind(core, *arguments, **keywords)
    except TypeError as error:
        names = list(signature.parameters.values())[hidden:]
        shown = ", ".join(str(p).partition(":")[0].partition(" =")[0] for p in names)
        raise CheckError("call", f"{name}({shown}): {error}") from None
    open_ = _open_setting(core, signature, arguments, keywords, hidden)
    if open_ is not None:
        return _either_way(function, name, core, arguments, keywords, hidden, open_)
    try:
        with interpreting(core.emit):
            return function(core, *arguments, **keywords)
    except HaganeError:  # what the program does wrong
        raise
    except TypeError:
        if not any(map(_is_open, (*arguments, *keywords.values()))):
            raise
        return core.lost(f"'{name}' with a number that is not known")  # it takes a known one


def _is_open(value: Value) -> bool:
    """Whether a value is a number that is not known, or holds one."""
    if isinstance(value, list | tuple):
        return any(map(_is_open, value))
    if isinstance(value, Tensor):
        return value.shape == ()
    return isinstance(value, Expr | Real | Truth)


def _open_setting(
    core: Core, signature: inspect.Signature, arguments: Sequence[Value],
    keywords: Mapping[str, Value], hidden: int,
) -> int | str | None:  # fmt: skip
    """Return the place of a truth value or an axis that the data decide, where it is no operand.

    A required argument may be an operand, such as a condition; the rest are settings.
    """
    named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [p for p in signature.parameters.values() if p.kind in named][1:]
    for place, value in enumerate(arguments):
        if isinstance(value, Expr) and place < len(parameters):
            if parameters[place].name in _AXES and core.joined_of(value) is not None:
                return place
        elif isinstance(value, Truth):
            own = parameters[place] if place < len(parameters) else None
            if own.default is not own.empty if own is not None else place >= hidden:
                return place
    for name, value in keywords.items():
        found = signature.parameters.get(name)
        if isinstance(value, Expr) and name in _AXES and core.joined_of(value) is not None:
            return name
        if isinstance(value, Truth) and (found is None or found.default is not found.empty):
            return name
    return None


def _either_way(
    function: Handler, name: str, core: Core, arguments: Sequence[Value],
    keywords: Mapping[str, Value], hidden: int, setting: int | str,
) -> Value:  # fmt: skip
    """Call a handler with a setting that the data decide: once for each way it may be."""
    given: dict[int | str, Value] = dict(enumerate(arguments))
    given.update(keywords)

    def call(value: Value) -> Value:
        known: dict[int | str, Value] = {**given, setting: value}
        plain = [known[place] for place in range(len(arguments))]
        named = {key: known[key] for key in keywords}
        return core.wrap(call_handler(function, name, core, plain, named, hidden))

    open_ = given[setting]
    joined = core.joined_of(open_) if isinstance(open_, Expr) else None
    choice = Choice(open_.term, True, False) if joined is None else joined
    return core.either(choice, call)


# Arguments that are places of axes, one or two.
_AXES = frozenset(("axis", "dim", "dim0", "dim1", "start_dim", "end_dim"))


__all__ = ["Handler", "Table", "View", "arguments_of", "call_handler", "places_of"]
