"""Numbers at the ends of their types, and operators that meet them: of elements, and of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from hagane.ops.registry import operators, schema
from hagane.ops.traits import Trait
from tests.native.models import model

REAL = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64")
# Operators that are tested elsewhere, by types that lie apart, or that draw numbers.
_LEFT_OUT = ("Cast", "CastLike", "Clip", "Dropout", "QuantizeLinear", "DequantizeLinear")
# Other attributes than an operator's own.
_ATTRIBUTES: dict[str, Sequence[dict[str, Any]]] = {
    "BitShift": [{"direction": "LEFT"}, {"direction": "RIGHT"}],
    "Celu": [{}, {"alpha": 0.5}],
    "Elu": [{}, {"alpha": -1.0}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "HardSigmoid": [{}, {"alpha": 0.0}],
    "IsInf": [{}, {"detect_negative": 0}, {"detect_positive": 0}],
    "LeakyRelu": [{}, {"alpha": -0.5}, {"alpha": 0.0}],
    "Mod": [{"fmod": 1}, {}],
    "Shrink": [{}, {"lambd": 1.0, "bias": 0.5}],
    "Swish": [{}, {"alpha": 2.0}, {"alpha": -1.0}],
    "ThresholdedRelu": [{}, {"alpha": -1.0}],
}
_LINES: tuple[tuple[str, dict[str, Any]], ...] = (
    *((f"Reduce{name}", {"keepdims": 0}) for name in (
        "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare",
    )),
    *((name, {"axis": 1, "select_last_index": last}) for name in ("ArgMax", "ArgMin")
      for last in (0, 1)),
    *((name, {"axis": 1}) for name in ("Softmax", "LogSoftmax", "Hardmax")),
    *(("TopK", {"largest": largest}) for largest in (0, 1)),
    *((name, {}) for name in ("CumSum", "CumProd", "LayerNormalization", "Unique", "Clip")),
    ("CumSum", {"reverse": 1, "exclusive": 1}),
    *(("LpNormalization", {"axis": 1, "p": p}) for p in (1, 2)),
    ("MeanVarianceNormalization", {"axes": [1]}),
)  # fmt: skip
_WIDTH = 37  # of a line: full vectors and a rest


def kind_of(name: str) -> np.dtype[Any]:
    """Return the NumPy type of an element type."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numbers(name: str) -> np.ndarray:
    """Return the ends of a type, what is near them, and ordinary numbers."""
    kind = kind_of(name)
    if name == "bool":
        return np.array([False, True])
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        drawn = [0, 1, 2, 3, 7, ends.max, ends.max - 1, ends.max // 2, ends.min, ends.min + 1]
        drawn += [-1, -2, -7]
        return np.array([n for n in drawn if ends.min <= n <= ends.max], kind)
    ends = ml_dtypes.finfo(kind)
    small, least, most = (float(n) for n in (ends.smallest_subnormal, ends.tiny, ends.max))
    near = [0.0, np.inf, small, least, most, most / 2, 1.0, 0.5, 20.0, float(ends.eps)]
    others = [np.nan, 1.5, -2.5, 3, -7, 88.5, -104]
    return np.array([*near, *(-n for n in near[:-1]), *others]).astype(kind)


def elementwise(kind: str) -> Iterator[tuple[tuple[str, ...], str, list[dict[str, Any]]]]:
    """Yield types of inputs, an operator of ONNX, and attributes to try.

    Args:
        kind: One of the inputs' element types.
    """
    known = {"float32": "float", "float64": "double"}
    for (domain, name), definition in operators().items():
        found = schema(domain, name)
        if domain or found is None or name in _LEFT_OUT:
            continue
        if not definition.traits & Trait.ELEMENTWISE or definition.random:
            continue
        many = found.max_inputs if found.max_inputs <= 3 else 2
        types = []
        for place in range(many):
            taken = found.input(place).types
            either = (kind, "bool", "int32", "float32")
            types += [each for each in either if f"tensor({known.get(each, each)})" in taken][:1]
        if len(types) == many and kind in types:
            yield tuple(types), name, list(_ATTRIBUTES.get(name, [{}]))


def grid(types: Sequence[str], operator: str) -> dict[str, np.ndarray]:
    """Return inputs in which every number of each type meets every one of the others."""
    drawn = [numbers(name)[: 24 if len(types) < 3 else 11] for name in types]
    if operator in ("Div", "Mod") and drawn[1].dtype.kind in "iu":
        drawn[1] = drawn[1][drawn[1] != 0]  # engines refuse to divide by it
    meshed = np.meshgrid(*(np.arange(len(each)) for each in drawn), indexing="ij")
    return {
        f"x{i}": each[at.reshape(-1)]
        for i, (each, at) in enumerate(zip(drawn, meshed, strict=True))
    }


def lines(kind: str) -> np.ndarray:
    """Return lines of one number, of two, and of ordinary ones with an extreme one among them."""
    random, found = np.random.default_rng(0), numbers(kind)
    if found.dtype.kind in "iu":
        drawn = [np.resize(found, _WIDTH), *(np.full(_WIDTH, found[i]) for i in (0, 5, 8))]
        return np.stack([*drawn, *random.choice(found, (6, _WIDTH))]).astype(found.dtype)
    nan, far = np.nan, np.inf
    pairs = [[nan], [far], [-far], [0.0], [-0.0], [1.0], [0.25], [-20.0], [nan, far], [nan, -far]]
    pairs += [[far, -far], [far, 1], [-far, 1], [nan, 1], [0.0, -0.0]]
    rows = [np.resize(pair, _WIDTH) for pair in pairs]
    for number in (nan, far, -far):
        for place in (0, 5, 17, _WIDTH - 1):
            rows.append(random.uniform(-20, 20, _WIDTH))
            rows[-1][place] = number
    return np.stack(rows).astype(found.dtype)


def of_lines(kind: str) -> tuple[onnx.ModelProto, list[str]]:
    """Return operators over lines ``x`` of open sizes, those that take the type, and outputs.

    An output has its operator's name, and a number.
    """
    x = lines(kind)
    below = np.array(1 if x.dtype.kind == "u" else -1).astype(x.dtype)
    constants = {
        "axes": np.array([1]), "k": np.array([4]), "axis": np.array(1), "low": below,
        "scale": np.ones(_WIDTH, x.dtype), "high": np.array(2).astype(x.dtype),
    }  # fmt: skip
    known = {"float32": "float", "float64": "double"}
    second = {"TopK": ["k"], "CumSum": ["axis"], "CumProd": ["axis"], "Clip": ["low", "high"]}
    second["LayerNormalization"] = ["scale"]
    nodes, outputs = [], []
    for name, attributes in _LINES:
        found = schema("", name)
        if found is None or f"tensor({known.get(kind, kind)})" not in found.input(0).types:
            continue
        others = ["axes"] if name.startswith("Reduce") else second.get(name, [])
        made = [f"{name} {len(outputs) + i}" for i in range(2 if name == "TopK" else 1)]
        nodes.append(helper.make_node(name, ["x", *others], made, **attributes))
        outputs += made
    proto = model(nodes, {"x": x}, outputs, constants, {"x": ["n", "m"]}, opset=24)
    proto.ir_version = 10
    return proto, outputs
