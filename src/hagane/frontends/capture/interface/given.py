"""Arguments of a captured call: types, examples, objects that hold them, and known values."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.interface.names import array_names, joined
from hagane.frontends.capture.interface.state import Stateful
from hagane.frontends.capture.interface.structure import Example, Object, Sized, Text, Whole
from hagane.frontends.python.enter.arguments import tensor_kind
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.enter.roots import Root
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import new_deque
from hagane.frontends.python.values.memory import ARRAY
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.type_text import parse_type
from hagane.frontends.python.values.values import Tensor, Value


def given(
    core: Interpreter,
    kinds: dict[str, str],
    root: Root,
    types: Sequence[Any],
    named: Mapping[str, Any],
    names: dict[int, str],
    held: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return arguments by name, in the order of the signature: types, or values that hold inputs.

    Args:
        core: The interpreter.
        kinds: Is filled with the kinds of tensors that examples say.
        root: The root of the call.
        types: Types as text, examples, objects, or known values, by position.
        named: The same by name.
        names: Is filled with the names of arrays that known values hold, by identity.
        held: Lists and dicts that the program finds elsewhere: they are no arguments by name.

    Raises:
        CheckError: There are too many, or one may hold tensors that capture does not see.
    """
    arguments = root.function.node.args
    positional = [*arguments.posonlyargs, *arguments.args][1 if root.bound else 0 :]
    parameters = [parameter.arg for parameter in (*positional, *arguments.kwonlyargs)]
    if len(types) > len(parameters):
        raise CheckError(
            "input", f"'{root.function.name}' takes {len(parameters)} arguments, got {len(types)}"
        )
    values = {**dict(zip(parameters, types, strict=False)), **named}
    values = {name: values[name] for name in sorted(values, key=_place_among(parameters))}
    parts = _Parts(core, names, tensor_kind(core, root.value, root.function))
    made: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, str):
            made[name] = parse_type(value)
            parts.note(Example(value), name)
        elif isinstance(value, Example):
            kinds[name] = value.kind
            made[name] = parse_type(value.text)
            parts.note(value, name)
        else:
            made[name] = parts.part(value, name)
    for name, value in (held or {}).items():
        parts.hold(value, name)
    return made


def _place_among(parameters: Sequence[str]) -> Callable[[str], int]:
    """Return the key that sorts names as parameters, others last."""
    places = {name: place for place, name in enumerate(parameters)}
    return lambda name: places.get(name, len(places))


class _Parts:
    """Makes values of arguments and of their parts; examples become inputs.

    Args:
        core: The interpreter.
        names: Is filled with the names of arrays that known values hold, by identity.
        kind: The class of tensors in containers of types that are texts.
    """

    def __init__(self, core: Interpreter, names: dict[int, str], kind: str):
        assert isinstance(core.observer, Stateful)
        self._class = kind
        self._core, self._names = core, names
        self._arguments, self._open = core.observer.arguments, core.observer.open_numbers
        self._made: dict[int, Value] = {}
        self._inputs: dict[str, Value] = {}

    def hold(self, value: Any, name: str) -> None:
        """Have the program find a container, and the objects in it, as parts of an argument."""
        self.part(value, name)
        waiting: list[Any] = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Object) and id(part.real) not in self._core.lifted:
                self._core.lifted[id(part.real)] = part.real, self._made[id(part)]
                waiting += [part.items, part.attributes]
            elif isinstance(part, dict):
                waiting += part.values()
            elif isinstance(part, tuple | list):
                waiting += part

    def note(self, example: Example, name: str) -> None:
        """Note that an argument is an array, which the program may write, once it is made.

        Args:
            example: Its type.
            name: Its name.
        """
        emit = self._core.emit
        assert isinstance(emit, GraphEmitter)

        def noted(tensor: Tensor) -> None:
            _mark(example, tensor)
            if example.kind in ("numpy.ndarray", "torch.Tensor") or tensor.rank:
                self._arguments.add_tensor(name, tensor)

        emit.given[name] = noted

    def part(self, value: Any, path: str) -> Value:
        """Return the value of an argument or of a part of it."""
        if isinstance(value, Example):
            return self._input(value, path)
        if isinstance(value, Text):
            return value.value
        if isinstance(value, Whole):
            return self._whole(value.value, path)
        if type(value) in (tuple, Sized):
            made = Size if isinstance(value, Sized) else tuple
            return made(self.part(v, joined(path, i)) for i, v in enumerate(value))
        if isinstance(value, Object):
            if id(value) not in self._made:
                self._object(value, path)
            return self._made[id(value)]
        if type(value) in (int, float):
            return self._number(value, path)
        return self._whole(value, path)

    def _whole(self, value: Any, path: str) -> Value:
        """Return a known value, such as a module, whose arrays get their names."""
        for identity, name in array_names(value).items():
            self._names.setdefault(identity, joined(path, name))
        return self._core.lift(value)

    def _input(self, example: Example, path: str) -> Value:
        """Return an input, the same one for two parts of one path: attribute and item."""
        if path not in self._inputs:
            made = self._core.make_value(
                parse_type(example.text), path, example.kind or self._class
            )
            if isinstance(made, Tensor):
                self._arguments.add_tensor(path, made)
                _mark(example, made)
            self._inputs[path] = made
        return self._inputs[path]

    def _number(self, value: int | float, path: str) -> Value:
        """Return a number: an input where the call changes it, else known."""
        if path not in self._open:
            return value
        return self._input(Example(type(value).__name__), path)

    def _object(self, value: Object, path: str) -> None:
        core, cls = self._core, value.cls
        if cls.__module__ in ("builtins", "collections") and issubclass(cls, dict | list | deque):
            if cls is deque:
                items: Any = new_deque(core.heap, value.attributes["maxlen"], ())
            elif issubclass(cls, list):
                items = core.new_list()
            else:
                items = core.new_dict({}, self._kind(value))
            self._made[id(value)] = items
            self._fill(items, value, path)
            self._arguments.add(path, items)
            return
        found = core.lift(cls)
        if not isinstance(found, Class):
            if _holds_examples(value):
                raise CheckError(
                    "capture",
                    f"'{path}' is a {cls.__module__}.{cls.__qualname__}, of which capture knows no "
                    "source, and holds tensors, which would become constants; give the tensors as "
                    "arguments of their own",
                )
            self._made[id(value)] = core.lift(value.real)
            return
        made = self._made[id(value)] = Instance(core.heap.new({}), found)
        if value.items is not None:
            inner = core.inherited(made)
            if inner is None:
                raise CheckError("capture", f"'{path}': the items of a {cls.__qualname__} are lost")
            if isinstance(inner, tuple):
                core.become(
                    made, [self.part(x, joined(path, i)) for i, x in enumerate(value.items)]
                )
            else:
                self._fill(inner, value, path)
                self._arguments.add(path, inner, made)
        for name, item in value.attributes.items():
            core.heap[made][name] = self.part(item, joined(path, name))
        self._arguments.add(path, made)

    def _fill(self, ref: Any, value: Object, path: str) -> None:
        core = self._core
        if isinstance(value.items, list):
            core.heap[ref] = tuple(
                self.part(item, joined(path, i)) for i, item in enumerate(value.items)
            )
            return
        for key, item in value.items.items():
            core.heap[ref][core.lift_key(key)] = self.part(item, joined(path, key))

    def _kind(self, value: Object) -> str:
        if issubclass(value.cls, defaultdict):
            factory = self._core.lift(value.real.default_factory)
            return f"defaultdict:{self._core.heap.new(factory)}"
        return "OrderedDict" if issubclass(value.cls, OrderedDict) else "dict"


def _mark(example: Example, tensor: Tensor) -> None:
    if example.is_array:
        tensor.value.meta[ARRAY] = True


def _holds_examples(value: Any) -> bool:
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Example):
            return True
        if isinstance(part, Object) and id(part) not in seen:
            seen.add(id(part))
            waiting += [*part.attributes.values(), part.items]
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, tuple | list):
            waiting += part
    return False


__all__ = ["given"]
