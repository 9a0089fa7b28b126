"""The description of a way back: the functions of a computation, from the last to the first.

Values have numbers: each operand and each result of the functions has one. All sizes are fixed, so
that a description is of one step of training, which comes again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hagane.nn.eager.order import Operand


@dataclass(frozen=True, slots=True)
class Passed:
    """A function on the way back.

    Attributes:
        kind: An operator, or a function over the builder.
        place: The operator's domain, or the function's module.
        name: Of operator or function.
        attributes: By name; those of a function are its named arguments.
        operands: Numbers of values; None for an absent one.
        outputs: Numbers of values; None for one that nothing reads.
        targets: Places of the operands by which there are gradients.
    """

    kind: Literal["operator", "function"]
    place: str
    name: str
    attributes: tuple[tuple[str, Any], ...]
    operands: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """The computation of a program: gradients of leaves, from that of one value.

    Attributes:
        values: The types of values by number; constants with their content.
        steps: The functions, those of highest rank first.
        start: The value whose gradient is given.
        leaves: Values by which gradients are asked for.
    """

    values: tuple[Operand, ...]
    steps: tuple[Passed, ...]
    start: int
    leaves: tuple[int, ...]
