"""``hagane.check`` and ``hagane.Shaped``: the public names of the checker."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.python.enter import check as checks
from hagane.frontends.python.enter import explore as exploring
from hagane.frontends.python.enter import imported
from hagane.frontends.python.enter.check import SCRIPT, Request
from hagane.frontends.python.load.modules import is_script
from hagane.frontends.python.report.findings import Problem, Report, TypedExpression

__all__ = [
    "SCRIPT",
    "Problem",
    "Report",
    "Request",
    "Shaped",
    "TypedExpression",
    "check",
    "check_imported",
    "check_source",
    "explore",
    "is_script",
]


def check(model_or_function: Any, *types_or_examples: Any, **named: Any) -> Report:
    """Interpret a real model or function over types and symbolic shapes.

    The object's attributes are known values; its source is interpreted, never run. Functions of
    PyTorch, NumPy and Chainer are known by tables.

    Args:
        model_or_function: A module, a chain, a bound method or a function with Python source.
        types_or_examples: The types of its arguments as text
            (``"float32[batch, 3, height, width]"``), or examples: tensors, arrays, plain values.
        named: The same by name.

    Returns:
        Errors, the type of every expression, assumptions, path conditions.

    Raises:
        InvalidArgument: A text that is no type.
    """
    return checks.check_object(model_or_function, types_or_examples, named, LibraryTables())


def check_source(request: Request) -> Report:
    """Check a file from its source alone; nothing of it is run."""
    return checks.check_source(request, LibraryTables())


def check_imported(request: Request, from_source: Report) -> Report:
    """Check the real object that a request names, with the findings of the source alone at hand."""
    return imported.check_imported(request, from_source, LibraryTables())


def explore(request: Request, *, seconds: float = 60.0, replay: bool = True) -> Report:
    """Check a program, then look for sizes that reach its other branches.

    Args:
        request: The object to check; plain numbers in its inputs are sizes of the first example.
        seconds: How long to look for further examples.
        replay: Whether to run the real program with the inputs of each error. This imports the
            file.
    """
    return exploring.explore(request, LibraryTables(), seconds=seconds, replay=replay)


class Shaped:
    """An annotation that names a shape: ``Shaped["float32[batch, 3, height, width]"]``."""

    def __class_getitem__(cls, text: str) -> Any:
        """Return ``typing.Any`` annotated with the text, so that other tools pass over it."""
        from typing import Annotated

        return Annotated[Any, text]
