"""Methods of PyTorch that change the axes of a tensor in place: ``squeeze_``, ``t_``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hagane.frontends.libraries.memory.writing import check_handed_on, check_writable, rename
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.memory import has_others
from hagane.frontends.python.values.values import Tensor, Value

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.core import Core

_FOLLOWED = ("squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims")


def turn(
    core: Core, name: str, x: Tensor, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    """Give all names of a tensor the view of it that a method makes.

    Tensors that share its memory keep their axes.

    Args:
        core: The interpreter.
        name: The method that makes the view: ``torch.Tensor.squeeze``.
        x: The tensor.
        arguments: The other arguments of the method.
        keywords: Those by name.

    Raises:
        CheckError: The caller would see it, the tensor may be one of several, or the expression has
            read it before.
    """
    last = name.rpartition(".")[2]
    if last not in _FOLLOWED or x.value.producer() is None or has_others(x.value):
        raise CheckError(
            "capture",
            f"'{last}_' changes the axes of a tensor in place, not its content; write "
            f"x = x.{last}(...)",
        )
    check_writable(core, x, f"write x = x.{last}(...)")
    check_handed_on(core, x)
    made = core.tables.call_method(core, name, [x, *arguments], keywords)
    if isinstance(made, Tensor) and made.value is not x.value:
        rename(core, {x.value: made})
    return made


__all__ = ["turn"]
