"""More steps by which graphs are drawn: operators of every family that take values of any size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.native.drawn_steps import Drawn

NUMBERS = ("float32", "float64", "int32", "int64")
REAL = ("float32", "float64")
MOST_RANK = 4

# Functions of one number that are well conditioned everywhere, and some that are not far from zero.
_SMOOTH = (
    *("Softsign", "Softplus", "Elu", "Selu", "HardSigmoid", "LeakyRelu", "Celu", "Mish"),
    *("ThresholdedRelu", "Gelu", "HardSwish", "Erf", "Atan", "Asinh", "Ceil", "Reciprocal"),
)
_EXACT = ("Sin", "Cos", "Sinh", "Cosh", "Log", "Tan")


def _function(g: Drawn) -> None:
    if g.dtype == "float32" or (g.dtype in REAL and g.draw(st.booleans())):
        g.add(g.draw(st.sampled_from((*_SMOOTH, *(_EXACT if g.ordered else ())))))
        g.ordered = False


def _arithmetic(g: Drawn) -> None:
    if g.dtype not in NUMBERS:
        return
    three = g.constant(np.array(3, g.dtype))
    whole = g.dtype.startswith("int")
    kind = g.draw(st.sampled_from(["Mod", "Div", "Pow", "Clip", "Max", "PRelu"]))
    if kind == "Mod" and g.ordered:
        g.add("Mod", three, fmod=int(not whole))
    elif kind == "Div":
        g.add("Div", three)
        g.ordered &= whole
    elif kind == "Pow":
        g.add("Pow", g.constant(np.array(2, g.dtype)))
        g.ordered &= whole
    elif kind == "Clip":
        g.add("Clip", g.constant(np.array(1, g.dtype)), three)
    elif kind == "Max":
        g.add("Max", three, g.last)
    elif kind == "PRelu" and not whole:
        g.add("PRelu", g.constant(np.array(0.25, g.dtype)))


def _bits(g: Drawn) -> None:
    if g.dtype in ("int32", "int64", "uint8", "int8"):
        name = g.draw(st.sampled_from(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]))
        g.add(name, g.constant(np.array(5, g.dtype)))
    elif g.dtype in REAL:
        g.add("IsNaN")
        g.dtype, g.ordered = "bool", True


def _where(g: Drawn) -> None:
    if g.ordered and g.dtype in NUMBERS:
        larger = g.side("Greater", g.last, g.constant(np.array(2, g.dtype)))
        before = g.last
        other = g.side("Mul", before, g.constant(np.array(2, g.dtype)))
        g.last = g.side("Where", larger, before, other)


def _gather(g: Drawn) -> None:
    indices = g.draw(st.sampled_from([[0], [-1, 0], [[0, -1], [0, 0]]]))
    array = np.array(indices)
    if g.rank - 1 + array.ndim <= MOST_RANK:
        g.add("Gather", g.constant(array), axis=g.axis())
        g.rank += array.ndim - 1


def _gather_elements(g: Drawn) -> None:
    zeros = np.zeros([1] * g.rank, np.int64) - g.draw(st.integers(0, 1))
    g.add("GatherElements", g.constant(zeros), axis=g.axis())


def _scatter_elements(g: Drawn) -> None:
    if g.dtype not in NUMBERS:
        return
    zeros = np.zeros([1] * g.rank, np.int64) - g.draw(st.integers(0, 1))
    update = g.constant(np.full([1] * g.rank, 5, g.dtype))
    way = g.draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
    g.add("ScatterElements", g.constant(zeros), update, axis=g.axis(), reduction=way)


def _scatter_nd(g: Drawn) -> None:
    if g.dtype not in NUMBERS:
        return
    at = g.constant(np.zeros((1, g.rank), np.int64))
    if g.draw(st.booleans()):
        way = g.draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
        g.add("ScatterND", at, g.constant(np.array([7], g.dtype)), reduction=way)
    else:
        g.add("GatherND", at)
        g.rank = 1


def _top_k(g: Drawn) -> None:
    if g.ordered and g.dtype in NUMBERS:
        k = g.constant(np.array([1]))
        g.add("TopK", k, n_outputs=2, axis=g.axis(), largest=g.draw(st.integers(0, 1)))


def _arg_max(g: Drawn) -> None:
    if g.ordered and g.dtype in NUMBERS:
        keep = int(g.draw(st.booleans()) or g.rank == 1)
        g.add(
            g.draw(st.sampled_from(["ArgMax", "ArgMin"])),
            axis=g.axis(), keepdims=keep, select_last_index=g.draw(st.integers(0, 1)),
        )  # fmt: skip
        g.dtype, g.rank = "int64", g.rank if keep else g.rank - 1


def _one_hot(g: Drawn) -> None:
    if g.ordered and g.dtype in ("int32", "int64") and g.rank < MOST_RANK:
        values = g.constant(np.array([0, 1], np.float32))
        g.add("OneHot", g.constant(np.array(5)), values, axis=g.draw(st.sampled_from([-1, 0])))
        g.dtype, g.rank = "float32", g.rank + 1


def _triangle(g: Drawn) -> None:
    if g.rank >= 2 and g.dtype in ("float32", "float64", "int64", "bool"):
        g.add(
            "Trilu",
            g.constant(np.array(g.draw(st.integers(-1, 1)))),
            upper=g.draw(st.integers(0, 1)),
        )


def _expand(g: Drawn) -> None:
    if g.rank < MOST_RANK:
        g.add("Expand", g.constant(np.array([2] + [1] * g.rank)))
        g.rank += 1


def _product(g: Drawn) -> None:
    if g.dtype not in REAL or g.rank < 2:
        return
    before = g.last
    turned = g.side("Transpose", before, perm=[*range(g.rank - 2), g.rank - 1, g.rank - 2])
    g.last = before
    kind = g.draw(st.sampled_from(["MatMul", "Gemm", "Einsum"]))
    if kind == "Gemm" and g.rank == 2:
        g.add("Gemm", before, transB=1, alpha=0.5)
    elif kind == "Einsum" and g.rank == 2:
        g.add("Einsum", before, equation=g.draw(st.sampled_from(["ij,kj->ik", "ij,ij->ij"])))
    else:
        g.add("MatMul", turned)
    g.ordered = False


def _more_reductions(g: Drawn) -> None:
    if g.dtype in REAL:
        names = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"]
        keep = int(g.draw(st.booleans()) or g.rank == 1)
        g.add(g.draw(st.sampled_from(names)), g.constant([g.axis()]), keepdims=keep)
        g.rank -= 1 - keep
        g.ordered = False


def _hard_max(g: Drawn) -> None:
    if g.ordered and g.dtype in REAL:
        g.add("Hardmax", axis=g.axis())


def _norm(g: Drawn) -> None:
    if g.dtype in REAL:
        g.add("LpNormalization", axis=g.axis(), p=g.draw(st.sampled_from([1, 2])))
        g.ordered = False


def _window(g: Drawn) -> None:
    """Convolve or pool what is an image of one channel, or of any number."""
    if g.dtype != "float32" or g.rank not in (2, 3):
        return
    axes = g.rank - 1
    g.add("Unsqueeze", g.constant([1]))
    g.rank += 1
    kind = g.draw(st.sampled_from(["Conv", "ConvTranspose", "MaxPool", "AveragePool", "Resize"]))
    random, pads = np.random.default_rng(2), [1] * 2 * axes
    stride = g.draw(st.integers(1, 2))
    if kind == "Conv":
        w = random.integers(-2, 3, (4, 1, *[3] * axes)).astype(np.float32)
        g.add("Conv", g.constant(w), pads=pads, strides=[stride] * axes)
    elif kind == "ConvTranspose":
        w = random.integers(-2, 3, (1, 4, *[3] * axes)).astype(np.float32)
        g.add("ConvTranspose", g.constant(w), pads=pads, strides=[stride] * axes)
    elif kind == "Resize":
        scales = np.array([1, 1, *[2] * axes], np.float32)
        mode = g.draw(st.sampled_from(["nearest", "linear"]))
        g.add("Resize", "", g.constant(scales), mode=mode)
    else:
        g.add(kind, kernel_shape=[3] * axes, pads=pads, strides=[stride] * axes)
    g.ordered &= kind in ("MaxPool",)


def _recurrent(g: Drawn) -> None:
    """Read the last axis as the batch, the one before as the sequence, of one number each."""
    if g.dtype != "float32" or g.rank != 2:
        return
    g.add("Unsqueeze", g.constant([2]))
    name, gates = g.draw(st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]))
    both = g.draw(st.booleans())
    random, many = np.random.default_rng(3), 1 + both
    w, r = (
        g.constant(random.standard_normal((many, gates * 5, n)).astype(np.float32)) for n in (1, 5)
    )
    g.add(name, w, r, hidden_size=5, direction="bidirectional" if both else "forward")
    g.rank, g.ordered = 4, False


def _quantize(g: Drawn) -> None:
    if g.ordered and g.dtype == "float32":
        scale, zero = g.constant(np.float32(0.5)), g.constant(np.array(3, np.uint8))
        before = g.last
        g.last = g.side("QuantizeLinear", before, scale, zero)
        g.dtype = "uint8"
        if g.draw(st.booleans()):
            g.add("DequantizeLinear", scale, zero)
            g.dtype = "float32"


def _counted(g: Drawn) -> None:
    """Values that follow from the sizes alone."""
    kind = g.draw(st.sampled_from(["Range", "ConstantOfShape", "Size", "EyeLike"]))
    before = g.last
    if kind == "Range":
        end = g.side("Size", before)
        g.last = g.side("Range", g.constant(np.array(0)), end, g.constant(np.array(2)))
        g.dtype, g.rank, g.ordered = "int64", 1, True
    elif kind == "ConstantOfShape":
        fill = helper.make_tensor("fill", TensorProto.FLOAT, [1], [1.5])
        g.last = g.side("ConstantOfShape", g.side("Shape", before), value=fill)
        g.dtype, g.ordered = "float32", True
    elif kind == "EyeLike" and g.rank == 2:
        g.add("EyeLike", dtype=TensorProto.FLOAT, k=g.draw(st.integers(-1, 1)))
        g.dtype, g.ordered = "float32", True


def _unique(g: Drawn) -> None:
    if g.ordered and g.dtype in ("float32", "int64", "int8"):
        g.add("Unique", sorted=1)
        g.rank = 1


def _reverse(g: Drawn) -> None:
    if g.rank >= 2 and g.dtype in NUMBERS:
        many = g.side("Shape", g.last, start=1, end=2)
        one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
        lengths = g.side("ConstantOfShape", many, value=one)
        g.add("ReverseSequence", lengths, batch_axis=1, time_axis=0)


def _sequence(g: Drawn) -> None:
    if g.dtype in ("float32", "int64"):
        made = g.side("SequenceConstruct", g.last, g.last)
        if g.draw(st.booleans()):
            made = g.side("SequenceInsert", made, g.last)
        g.last = g.side("ConcatFromSequence", made, axis=g.axis())


def _loop(g: Drawn) -> None:
    """Three turns that add the value of before the loop."""
    if g.dtype not in NUMBERS:
        return
    name, kind = f"l{len(g.nodes)}", helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype))
    body = helper.make_graph(
        [
            helper.make_node("Identity", [f"{name}_going"], [f"{name}_goes"]),
            helper.make_node("Add", [f"{name}_state", g.last], [f"{name}_next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info(f"{name}_turn", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{name}_going", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{name}_state", kind, None),
        ],
        [
            helper.make_tensor_value_info(f"{name}_goes", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{name}_next", kind, None),
        ],
    )
    turns, going = g.constant(np.array(3)), g.constant(np.array(True))
    g.last = g.side("Loop", turns, going, g.last, body=body)
    g.ordered &= g.dtype.startswith("int")


def _branch(g: Drawn) -> None:
    """Negate the value where it has many elements."""
    if g.dtype not in NUMBERS:
        return
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype))
    large = g.side("Greater", g.side("Size", g.last), g.constant(np.array(20)))
    name = f"b{len(g.nodes)}"
    branches = {
        f"{way}_branch": helper.make_graph(
            [helper.make_node(operator, [g.last], [f"{name}_{way}"])],
            way, [], [helper.make_tensor_value_info(f"{name}_{way}", kind, None)],
        )
        for way, operator in (("then", "Neg"), ("else", "Identity"))
    }  # fmt: skip
    g.last = g.side("If", large, **branches)


OPERATORS: tuple[Callable[[Drawn], None], ...] = (
    *(_function, _arithmetic, _bits, _where, _gather, _gather_elements, _scatter_elements),
    *(_scatter_nd, _top_k, _arg_max, _one_hot, _triangle, _expand, _product, _more_reductions),
    *(_hard_max, _norm, _window, _recurrent, _quantize, _counted, _unique, _reverse, _sequence),
    *(_loop, _branch),
)
