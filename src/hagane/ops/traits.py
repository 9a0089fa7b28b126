"""Properties of operators, the only ones that passes and engines may take for granted."""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """A property of an operator.

    Attributes:
        ELEMENTWISE: An element of the output depends on those at its place in the inputs alone,
            after broadcasting: it commutes with permutations of axes.
        EXPANDING: The output may be much larger than all inputs together.
        FREE: It does no arithmetic.
        LINEAR: The output is linear in input 0, with weights as input 1 and, where the operator
            takes one, a bias of one element a channel as input 2.
        MOVING: All elements of the outputs are elements of input 0.
        RANDOM: Two runs may differ.
        REDUCING: An output element sums up many elements of input 0, each of which counts once.
        REPEATING: Elements are repeated along axes: if the shape stays, so does the content.
        RESHAPING: The output has the elements of input 0 in the same order.
        ROWWISE: Each slice along the attribute ``axis`` is computed for itself, in one piece.
        VARIADIC: It takes any number of inputs of one kind, and returns an only one as it is.
    """

    NONE = 0
    ELEMENTWISE = auto()
    EXPANDING = auto()
    FREE = auto()
    LINEAR = auto()
    MOVING = auto()
    RANDOM = auto()
    REDUCING = auto()
    REPEATING = auto()
    RESHAPING = auto()
    ROWWISE = auto()
    VARIADIC = auto()
