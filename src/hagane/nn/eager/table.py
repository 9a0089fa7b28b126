"""The operators that have programs, and the properties of operands that a program is made for."""

from __future__ import annotations

from dataclasses import dataclass

# Operands whose sizes count in full; for others, the axes that do.
_ALL = None


@dataclass(frozen=True, slots=True)
class Served:
    """How an operator's programs are made.

    Attributes:
        constants: Operands that are part of the program.
        fixed: For each operand, the axes whose sizes are numbers; None for all.
    """

    constants: tuple[int, ...] = ()
    fixed: tuple[tuple[int, ...] | None, ...] = ()


_ELEMENTWISE = (
    *("Abs", "Add", "Ceil", "Clip", "Cos", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu"),
    *(
        "HardSigmoid",
        "LeakyRelu",
        "Log",
        "Max",
        "Mean",
        "Min",
        "Mul",
        "Neg",
        "PRelu",
        "Pow",
        "Reciprocal",
        "Relu",
    ),
    *("Selu", "Sigmoid", "Sin", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where"),
)
_ROWS = ("LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax")
_REDUCING = ("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare")
# Channels are numbers, images of any size and number.
_CONVOLVING = ("Conv", "ConvTranspose")
_POOLING = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
_PRODUCTS = ("Gemm", "MatMul")
_MOVING = ("Concat", "Gather", "Transpose")

SERVED: dict[tuple[str, str], Served] = {
    **{("", name): Served() for name in (*_ELEMENTWISE, *_ROWS, *_PRODUCTS, *_MOVING)},
    **{("", name): Served(constants=(1,)) for name in _REDUCING},
    **{("", name): Served(fixed=((1,),)) for name in _POOLING},
    **{("", name): Served(fixed=((1,), _ALL, _ALL)) for name in _CONVOLVING},
    ("hagane", "ConvWeightGradient"): Served(fixed=((1,), (1,))),
    ("hagane", "AveragePoolGradient"): Served(fixed=((1,), (1,))),
    ("hagane", "MaxPoolGradient"): Served(fixed=((1,), (1,), (1,))),
}
