"""``hagane.check`` and ``hagane.Shaped``: the public names of the checker."""

from __future__ import annotations

from typing import Any

from hagane.frontends.python.check import check_object
from hagane.frontends.python.findings import Problem, Report, TypedExpression

__all__ = ["Problem", "Report", "Shaped", "TypedExpression", "check"]


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
    return check_object(model_or_function, types_or_examples, named)


class Shaped:
    """An annotation that names a shape: ``Shaped["float32[batch, 3, height, width]"]``."""

    def __class_getitem__(cls, text: str) -> Any:
        """Return ``typing.Any`` annotated with the text, so that other tools pass over it."""
        from typing import Annotated

        return Annotated[Any, text]
