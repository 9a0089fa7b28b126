"""Operators of users: ``hagane.register_operator``, and files that register some."""

from __future__ import annotations

from pathlib import Path

from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.explore import import_program
from hagane.ops.definition import CSource, Unsupported
from hagane.ops.own import forget_operator, register_operator
from hagane.ops.traits import Trait

__all__ = [
    "CSource",
    "Trait",
    "Unsupported",
    "forget_operator",
    "load_plugin",
    "register_operator",
]


def load_plugin(path: str | Path) -> None:
    """Run a Python file that registers operators.

    Raises:
        InvalidArgument: There is no such file, or it cannot be run.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidArgument(f"plugin: there is no file '{file}'")
    import_program(file)
