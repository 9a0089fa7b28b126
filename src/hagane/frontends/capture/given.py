"""Arguments of a captured call: types, examples, and known values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hagane.frontends.capture.names import joined
from hagane.frontends.capture.roots import Root
from hagane.frontends.capture.state import Stateful
from hagane.frontends.capture.structure import Example, Text
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.type_text import parse_type
from hagane.frontends.python.values.values import DictRef, ListRef, Value

Container = TypeVar("Container", ListRef, DictRef)


def given(
    core: Interpreter,
    kinds: dict[str, str],
    root: Root,
    types: Sequence[Any],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return arguments by name: types, or values of which inputs are parts.

    Args:
        core: The interpreter.
        kinds: Is filled with the kinds of tensors that examples say.
        root: The root of the call.
        types: Types as text, examples, or known values, by position.
        named: The same by name.

    Raises:
        CheckError: There are too many.
    """
    arguments = root.function.node.args
    positional = [*arguments.posonlyargs, *arguments.args][1 if root.bound else 0 :]
    names = [parameter.arg for parameter in (*positional, *arguments.kwonlyargs)]
    if len(types) > len(names):
        raise CheckError(
            "input", f"'{root.function.name}' takes {len(names)} arguments, got {len(types)}"
        )
    values = {**dict(zip(names, types, strict=False)), **named}
    return {name: _argument(core, kinds, value, name) for name, value in values.items()}


def _argument(core: Interpreter, kinds: dict[str, str], value: Any, name: str) -> Any:
    if isinstance(value, str):
        return parse_type(value)
    if isinstance(value, Text):
        return value.value
    if isinstance(value, Example):
        kinds[name] = value.kind
        return parse_type(value.text)
    return _part(core, value, name)


def _part(core: Interpreter, value: Any, name: str) -> Value:
    """Return the value of an argument or of a part of it; examples become inputs."""
    if isinstance(value, Example):
        return core.make_value(parse_type(value.text), name, value.kind)
    if isinstance(value, list):
        parts = [_part(core, v, joined(name, i)) for i, v in enumerate(value)]
        return _seen(core, name, core.new_list(parts))
    if type(value) is tuple:
        return tuple(_part(core, v, joined(name, i)) for i, v in enumerate(value))
    if type(value) is dict:
        items = {k: _part(core, v, joined(name, k)) for k, v in value.items()}
        return _seen(core, name, core.new_dict(items))
    return core.lift(value)


def _seen(core: Interpreter, name: str, made: Container) -> Container:
    """Return a container whose changes the caller would see."""
    assert isinstance(core.observer, Stateful)
    core.observer.given(name, made)
    return made


__all__ = ["given"]
