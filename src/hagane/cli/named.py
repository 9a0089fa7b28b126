"""Functions that options name as ``FILE.py:function``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.explore import import_program


def named_function(target: str, option: str) -> Callable[..., Any]:
    """Return a function of the user's.

    Args:
        target: ``FILE.py:function``.
        option: Its name in errors.

    Raises:
        InvalidArgument: There is no such file or function.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InvalidArgument(f"{option} '{target}': expected FILE.py:function")
    if not Path(path).is_file():
        raise InvalidArgument(f"{option}: there is no file '{path}'")
    found = vars(import_program(Path(path))).get(name)
    if not callable(found):
        raise InvalidArgument(f"{option}: '{path}' has no function '{name}'")
    function: Callable[..., Any] = found
    return function
