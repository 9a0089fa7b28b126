"""Examples of arguments as values of the interpreted program."""

from __future__ import annotations

from typing import Any

from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.values.type_text import tensor_text
from hagane.frontends.python.values.values import Value


def example_value(interpreter: Interpreter, value: Any, name: str, kind: str) -> Value:
    """Return an example as a value; texts of tensor types inside it stand for tensors."""
    if not _has_types(value):
        return interpreter.lift(value)
    if isinstance(value, str):
        text = tensor_text(value)
        return value if text is None else interpreter.make_value(text, name, kind)
    if isinstance(value, dict):
        return interpreter.new_dict(
            {
                interpreter.lift_key(key): example_value(interpreter, item, f"{name}_{key}", kind)
                for key, item in value.items()
            }
        )
    items = [example_value(interpreter, v, f"{name}_{i}", kind) for i, v in enumerate(value)]
    return tuple(items) if isinstance(value, tuple) else interpreter.new_list(items)


def _has_types(value: Any) -> bool:
    """Whether a value is a tensor type as text, or holds one in lists, tuples or dicts."""
    if isinstance(value, str):
        return tensor_text(value) is not None
    items = value.values() if type(value) is dict else value
    return type(value) in (list, tuple, dict) and any(map(_has_types, items))
