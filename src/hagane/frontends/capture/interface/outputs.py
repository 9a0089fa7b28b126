"""A program's results as outputs of its graph."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.described import Described, Same, Stack
from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.interface.arguments import Argument, Arguments, equal
from hagane.frontends.capture.interface.names import joined
from hagane.frontends.capture.interface.state import Stateful
from hagane.frontends.capture.interface.structure import (
    Change,
    Column,
    Constant,
    Handed,
    Items,
    Kept,
    Leaf,
    Made,
    Opaque,
    Queued,
    Record,
    Sized,
)
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.memory import COMPLEX
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Wrapped,
)
from hagane.frontends.python.values.open_tuples import OpenTuple
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Device,
    DictRef,
    DType,
    Fields,
    Host,
    Library,
    LibraryMethod,
    ListRef,
    Many,
    Method,
    Range,
    Real,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
)
from hagane.symbolic import Expr


def outputs(core: Interpreter, value: Value, path: str, *, suffix: str = "") -> Any:
    """Make outputs of a result, called by their paths, and return its structure.

    Raises:
        CheckError: Some of it is no tensor, number or container of such.
    """
    value = core.settle(value)
    if _arguments(core).path_of(value) is not None:
        return _handed(core, value, path, suffix)
    return _outputs(core, value, path, suffix)


def _arguments(core: Interpreter) -> Arguments:
    assert isinstance(core.observer, Stateful)
    return core.observer.arguments


def _handed(core: Interpreter, value: Value, path: str, suffix: str) -> Handed:
    """Make outputs of an argument that the program returns."""
    arguments = _arguments(core)
    own = arguments.path_of(value)
    assert own is not None
    if value.key in arguments.returned:
        return Handed(own)
    arguments.returned.add(value.key)
    return Handed(own, _outputs(core, value, path, suffix))


def changes(core: Interpreter) -> list[Change]:
    """Make outputs of all that the call changes in its arguments, and return their structures.

    Raises:
        CheckError: Some of it is no tensor, number or object of such.
    """
    arguments = _arguments(core)
    written = arguments.written()
    names = {path: _output(core, tensor, path, ".new").name for path, tensor in written.items()}
    made = [Change("", {}, None, names)] if names else []
    for argument, now in arguments.changed():
        found = _changed(core, argument, now, written)
        if found is not None:
            made.append(found)
    return made


def _changed(
    core: Interpreter, argument: Argument, now: Any, written: Mapping[str, Tensor]
) -> Change | None:
    """Return the structure of the new content of an argument; None if only memory was written."""
    before, path = argument.before, argument.path
    if not isinstance(now, dict | tuple):
        raise CheckError(
            "capture",
            f"the call changes how many items '{path}' has by data, which the caller sees; return "
            "the new one",
        )
    old: dict[Any, Any] = before if isinstance(before, dict) else dict(enumerate(before))
    new: dict[Any, Any] = now if isinstance(now, dict) else dict(enumerate(now))
    made: dict[Any, Any] = {}
    for key, value in new.items():
        name, kept = joined(path, key), old.get(key, MISSING)
        in_place = name in written and value.value is written[name].value
        if in_place or (kept is not MISSING and (value is kept or equal(kept, value))):
            made[key] = Kept(key)
        elif name in written:
            raise CheckError(
                "capture",
                f"'{name}' is written in place, and then another tensor takes its place; make the "
                "new one without writing into the old one",
            )
        else:
            made[key] = _new_part(core, value, name)
    if [*made] == [*old] and all(isinstance(part, Kept) for part in made.values()):
        return None
    if isinstance(argument.ref, Instance):
        gone: dict[str, Any] = {key: None for key in old if key not in made}
        new_ones = {key: part for key, part in made.items() if not isinstance(part, Kept)}
        return Change(path, {**new_ones, **gone})
    return Change(path, {}, made if isinstance(now, dict) else [*made.values()])


def _new_part(core: Interpreter, value: Value, path: str) -> Any:
    try:
        return _part(core, value, path, ".new", ())
    except CheckError as error:
        raise CheckError("capture", f"the call changes '{path}': {error.message}") from None


def _outputs(core: Interpreter, value: Value, path: str, suffix: str) -> Any:
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    if isinstance(value, Tensor):
        return _output(core, value, path, suffix)
    if isinstance(value, ListRef):
        content = core.heap[value]
        if isinstance(content, Many):
            if isinstance(value, Deque):
                place = f"'{path}'" if path else "the result"
                raise CheckError(
                    "capture", f"{place} is a deque whose length the data decide; return a list"
                )
            return _items(core, content, path, suffix, is_tuple=isinstance(value, OpenTuple))
        return _listed(
            value,
            [outputs(core, item, joined(path, i), suffix=suffix) for i, item in enumerate(content)],
        )
    if isinstance(value, Size):
        return Sized(
            outputs(core, item, joined(path, i), suffix=suffix) for i, item in enumerate(value)
        )
    if isinstance(value, tuple):
        names = getattr(value, "names", None)
        parts = tuple(
            outputs(core, item, joined(path, name), suffix=suffix)
            for name, item in zip(names or range(len(value)), value, strict=True)
        )
        if names is None:
            return parts
        real = value.real if isinstance(value, Fields) else None
        return Record(real, dict(zip(names, parts, strict=True)), is_tuple=True)
    if isinstance(value, DictRef) and isinstance(core.heap[value], dict):
        items = core.heap[value].items()
        named = {k: outputs(core, v, joined(path, k), suffix=suffix) for k, v in items}
        return _dictionary(core, value, named)
    if isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.fields:
        content = core.heap[value]
        fields = {
            name: Constant(None) if content[name] is None
            else outputs(core, content[name], joined(path, name), suffix=suffix)
            for name, _ in value.cls.fields
            if name in content
        }  # fmt: skip
        return Record(core.real_class(value.cls), fields, "named tuple" in value.cls.flags)
    if isinstance(value, Instance) and isinstance(value.cls, Class):
        if value.host is None:
            return _made(core, value, value.cls, path, suffix, ())
        return Constant(value.host)  # members changed by the call are outputs of their own
    if isinstance(value, Expr):
        return _output(core, emit.size(value), path, suffix, _kind(emit, value, "int"))
    if isinstance(value, Real):
        return _output(core, emit.real_tensor(value), path, suffix, _kind(emit, value, "float"))
    if isinstance(value, Truth):
        return _output(core, emit.as_scalar(value, "bool"), path, suffix, "bool")
    if isinstance(value, range | Range):
        ends = [emit.as_scalar(end, "int") for end in (value.start, value.stop, value.step)]
        return _output(core, emit.op("Range", *ends), path, suffix, "range")
    if isinstance(value, Unknown):
        raise CheckError("capture", value.reason)
    if isinstance(value, Choice):
        kind = _number_kind(value)
        if kind:
            return _output(core, _scalar(core, value, kind), path, suffix, kind)
        raise CheckError(
            "capture",
            f"{core.show(value)}: the data decide which; return values of one type on all paths",
        )
    if value is None or isinstance(value, str):
        return Constant(value)
    if isinstance(value, SetRef) and is_plain(core.heap[value]):
        return Constant((frozenset if value.frozen else set)(core.heap[value]))
    if isinstance(value, bool | int | float):
        dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(value)]
        made = emit.constant(np.array(value, dtype))
        return _output(core, made, path, suffix, type(value).__name__)
    if isinstance(value, complex):
        made = emit.constant(np.array([value.real, value.imag]))
        return _output(core, made, path, suffix, "complex number")
    raise CheckError("capture", f"{core.show(value)} is no tensor, number or container of such")


def _listed(value: Value, items: list[Any]) -> list[Any]:
    """Return items as those of a list or deque of the program."""
    return Queued(items, value.most) if isinstance(value, Deque) else items


def _dictionary(core: Interpreter, value: DictRef, named: dict[Any, Any]) -> dict[Any, Any]:
    """Return a dictionary of the class that a value of the program has."""
    kind, _, key = value.kind.partition(":")
    if kind == "defaultdict":
        factory = core.heap[int(key)]
        if factory is None or isinstance(factory, Host):
            return defaultdict(None if factory is None else factory.object, named)
    if kind == "Counter":
        return Counter(named)
    return OrderedDict(named) if kind == "OrderedDict" else named


def _kind(emit: GraphEmitter, value: Expr | Real, own: str) -> str:
    """Return the kind of a number; the data may decide between one of Python and one of NumPy.

    A scalar of NumPy does what a number of Python does, not the other way round.
    """
    return "numpy.generic" if _SCALARS[own] in emit.also(value) else own


def _number_kind(value: Value) -> str:
    """Return the kind of one of several numbers of Python and NumPy: ``int``, ``float``, ``bool``.

    It is empty for other values, and for a number or a truth value.
    """
    if isinstance(value, Choice):
        kinds = {_number_kind(value.yes), _number_kind(value.no)}
        if len(kinds) == 1:
            return kinds.pop()
        return "float" if kinds == {"int", "float"} else ""
    if isinstance(value, bool | Truth):
        return "bool"
    if isinstance(value, Tensor):
        scalar = value.kind == "numpy.ndarray" and value.shape == ()
        found = {"i": "int", "u": "int", "f": "float", "b": "bool"}.get(
            value.dtype.numpy().kind, ""
        )
        return found if scalar else ""
    return "int" if isinstance(value, int | Expr) else "float" if _is_float(value) else ""


def _is_float(value: Value) -> bool:
    return isinstance(value, float | Real)


def _items(core: Interpreter, content: Many, path: str, suffix: str, *, is_tuple: bool) -> Any:
    """Make outputs of the items of a list or tuple whose length the data decide."""
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    if content.stacked is not None:
        kind = "" if content.stacked.kind else "numbers"
        made = _output(core, content.stacked, path, suffix, kind)
        return made if kind and not is_tuple else Items(Column(made), is_tuple)

    def part(found: Described, path: str) -> Any:
        if isinstance(found, Same):
            return Constant(found.value)
        if isinstance(found, Stack):
            made = _output(core, found.values, path, suffix, found.kind)
            sizes = None
            if found.sizes is not None:
                own = joined(path or "output", "sizes")
                sizes = _output(core, found.sizes, own, suffix, "numpy.ndarray")
            return Column(made, sizes, found.axis, found.inner)
        fields = getattr(found.like, "names", None)  # of a named tuple
        names = fields or found.names or range(len(found.parts))
        parts = [part(p, joined(path, n)) for n, p in zip(names, found.parts, strict=True)]
        named = dict(zip(names, parts, strict=True))
        if fields is not None:
            return Record(getattr(found.like, "real", None), named, is_tuple=True)
        if isinstance(found.like, DictRef):
            return named
        if isinstance(found.like, Instance):
            assert isinstance(found.like.cls, Class)
            real = core.real_class(found.like.cls)
            return Record(real, named, "named tuple" in found.like.cls.flags)
        return parts if isinstance(found.like, ListRef) else tuple(parts)

    return Items(part(emit.described(content), path), is_tuple)


def _scalar(core: Interpreter, value: Value, kind: str) -> Tensor:
    """Return one of several numbers as a scalar of a kind."""
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    if isinstance(value, Choice):
        yes, no = _scalar(core, value.yes, kind), _scalar(core, value.no, kind)
        return emit.choose(value.condition, yes, no, ())
    if isinstance(value, Tensor):
        made: Tensor = emit.op("Cast", value, to=_SCALARS[kind])
        return made
    return emit.as_scalar(value, kind)


def _made(
    core: Interpreter, value: Instance, cls: Class, path: str, suffix: str, around: tuple[int, ...]
) -> Made:
    """Make outputs of the tensors in an object, and of its numbers that are not known."""
    if value.key in around:
        raise CheckError(
            "capture", f"{core.show(value)} at '{path}' holds itself: return its tensors alone"
        )
    around = (*around, value.key)
    found = {
        name: _part(core, item, joined(path, name), suffix, around)
        for name, item in core.heap[value].items()
        if item is not MISSING
    }
    inner = core.inherited(value)
    items = None if inner is None else _part(core, inner, path, suffix, around)
    return Made(core.real_class(cls), found, items)


def _part(core: Interpreter, value: Value, path: str, suffix: str, around: tuple[int, ...]) -> Any:
    """Make outputs of a part of an object; known members stay constants."""
    value = core.settle(value)
    own = _arguments(core).path_of(value)
    if own is not None:
        return Handed(own) if suffix else _handed(core, value, path, suffix)
    if isinstance(value, DType | Device) or (is_plain(value) and not isinstance(value, tuple)):
        return Constant(value)
    if isinstance(value, Host):
        return Constant(value.object)
    if isinstance(value, Class | Function) and value.host is not None:
        return Constant(value.host)
    if isinstance(value, _NO_VALUES):
        return Opaque(f"'{path}' is {core.show(value)}")
    if isinstance(value, SetRef):
        return Constant(set(core.heap[value]))
    if isinstance(value, ListRef | DictRef) and not isinstance(core.heap[value], Many):
        content = core.heap[value]
        if isinstance(content, dict):
            return {k: _part(core, v, joined(path, k), suffix, around) for k, v in content.items()}
        return _listed(
            value,
            [_part(core, v, joined(path, i), suffix, around) for i, v in enumerate(content)],
        )
    if type(value) is tuple:
        return tuple(_part(core, v, joined(path, i), suffix, around) for i, v in enumerate(value))
    if isinstance(value, Instance) and isinstance(value.cls, Class) and not value.cls.fields:
        if value.host is not None:
            return Constant(value.host)
        return _made(core, value, value.cls, path, suffix, around)
    return outputs(core, value, path, suffix=suffix)


_SCALARS = {
    "int": ir.DataType.INT64,
    "float": ir.DataType.DOUBLE,
    "bool": ir.DataType.BOOL,
}
_OBJECTS = ("torch.Tensor", "numpy.ndarray")  # kinds of tensors that a caller may tell apart
# Parts of objects that hold no tensor which a caller could read.
_NO_VALUES = (Bound, Class, Function, Library, LibraryMethod, Method, Wrapped)


def _output(core: Interpreter, tensor: Tensor, path: str, suffix: str, kind: str = "") -> Leaf:
    emit = core.emit
    assert isinstance(emit, GraphEmitter)
    kind = kind or ("numpy.generic" if core.tables.is_scalar(tensor) else tensor.kind)
    given, held, of = "", None, tensor
    if kind in _OBJECTS:
        given, held = _arguments(core).path_of_tensor(tensor), held_tensor(core, tensor)
    if tensor.dtype in COMPLEX:
        number = core.tables.complex_parts.is_number(tensor)
        kind = f"complex {'number' if number else kind}"
        tensor = core.tables.complex_parts.joined(core, tensor)
    made_here = tensor.parameter and not given and held is None and kind == "torch.Tensor"
    name = path or "output"
    taken = any(value.name == name for value in emit.root.graph.inputs)
    full = f"{name}{suffix or ('.new' if taken else '')}"
    first = ""
    if kind.removeprefix("complex ") in _OBJECTS:
        _, first = _arguments(core).outputs.setdefault(id(of), (of, full))
    for output in emit.root.graph.outputs:  # an argument that is returned and changed
        node = output.producer()
        if output.name == full and node is not None and node.inputs[0] is tensor.value:
            return Leaf(full, kind, first, given, held, made_here)
    emit.label = name
    with emit.at(emit.root):
        made = emit.op("Identity", tensor)
    made.value.name = full
    emit.root.graph.outputs.append(made.value)
    return Leaf(full, kind, first, given, held, made_here)


def held_tensor(core: Interpreter, tensor: Tensor) -> Any:
    """Return the tensor of the running Python that a value stands for, None if it is another one.

    Attributes that the call changes are none of these: what they are is known at the call's end.
    """
    assert isinstance(core.observer, Stateful)
    if str(tensor.value.name) in core.observer.state_inputs:
        return None
    return next((real for real, value in core.lifted.values() if value is tensor), None)


__all__ = ["changes", "held_tensor", "outputs"]
