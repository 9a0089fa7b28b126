"""Operators in models of their own, with open sizes, beside ONNX Runtime.

``python -m benchmarks.operators [NAME…] [--seconds 1]`` prints, on one thread and on two, the time
of each engine and ONNX Runtime's over hagane's. Both engines are in one process and take turns, a
run each; threads of ONNX Runtime do not spin. The median of the pairs' ratios is shown.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hagane

Feed = dict[str, np.ndarray]
RNG = np.random.default_rng(0)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return normal numbers."""
    return RNG.standard_normal(shape).astype(dtype)


def model(
    operator: str,
    feed: Feed,
    fixed: Sequence[str] = (),
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, np.ndarray] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node; sizes of inputs are open but for those named in ``fixed``."""
    domain, _, name = operator.rpartition(":")
    inputs = [
        helper.make_tensor_value_info(
            key,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [
                d if key in fixed or f"{key}:{i}" in fixed else f"{key}_{i}"
                for i, d in enumerate(array.shape)
            ],
        )
        for key, array in feed.items()
    ]
    node = helper.make_node(name, [*feed, *(constants or {})], outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [helper.make_tensor_value_info(key, TensorProto.UNDEFINED, None) for key in outputs],
        [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()],
    )
    for value in graph.output:
        value.ClearField("type")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(
        graph, ir_version=9, opset_imports=[*opsets, helper.make_opsetid("com.microsoft", 1)]
    )


def trees(
    rows: int, count: int = 100, depth: int = 6, features: int = 30
) -> tuple[onnx.ModelProto, Feed]:
    """Return a regression forest and rows for it."""
    inner, found = 2**depth - 1, {}  # type: tuple[int, dict[str, list[Any]]]
    for tree in range(count):
        for i in range(2 * inner + 1):
            leaf = i >= inner
            entry = {
                "nodes_treeids": tree,
                "nodes_nodeids": i,
                "nodes_modes": "LEAF" if leaf else "BRANCH_LEQ",
                "nodes_featureids": 0 if leaf else int(RNG.integers(features)),
                "nodes_values": 0.0 if leaf else float(RNG.standard_normal()),
                "nodes_truenodeids": 0 if leaf else 2 * i + 1,
                "nodes_falsenodeids": 0 if leaf else 2 * i + 2,
            }
            if leaf:
                entry |= {
                    "target_treeids": tree,
                    "target_nodeids": i,
                    "target_ids": 0,
                    "target_weights": float(RNG.standard_normal()),
                }
            for key, value in entry.items():
                found.setdefault(key, []).append(value)
    feed = {"x": draw(rows, features)}
    return model("ai.onnx.ml:TreeEnsembleRegressor", feed, ["x:1"], n_targets=1, **found), feed


def case(
    operator: str, feed: Feed, fixed: Sequence[str] = (), **more: Any
) -> tuple[onnx.ModelProto, Feed]:
    """Return a model and its feed."""
    return model(operator, feed, fixed, **more), feed


def indices(count: int, *shape: int) -> np.ndarray:
    """Return drawn indices."""
    return RNG.integers(0, count, shape)


def numbers(*items: int) -> np.ndarray:
    """Return int64 numbers."""
    return np.array(items, np.int64)


def nbits(rows: int, k: int = 1024, n: int = 1024) -> tuple[onnx.ModelProto, Feed]:
    """Return a product with weights of 4 bits."""
    packed = RNG.integers(0, 256, (n, k // 32, 16)).astype(np.uint8)
    constants = {"b": packed, "s": RNG.random(n * k // 32).astype(np.float32)}
    feed = {"x": draw(rows, k)}
    kept = {"K": k, "N": n, "bits": 4, "block_size": 32}
    return model("com.microsoft:MatMulNBits", feed, ["x:1"], constants=constants, **kept), feed


def detections() -> Feed:
    """Return boxes and scores as a detector leaves them."""
    corners = RNG.random((1, 2000, 4)).astype(np.float32)
    corners[..., 2:] = corners[..., :2] + corners[..., 2:] * 0.2
    return {
        "b": corners,
        "s": RNG.random((1, 20, 2000)).astype(np.float32),
        "m": numbers(100),
        "t": np.float32([0.5]),
        "f": np.float32([0.8]),
    }


CASES: Mapping[str, Callable[[], tuple[onnx.ModelProto, Feed]]] = {
    "trees, 1 row": lambda: trees(1),
    "trees, 1000 rows": lambda: trees(1000),
    "MatMulNBits, 1 row": lambda: nbits(1),
    "MatMulNBits, 64 rows": lambda: nbits(64),
    "Slice": lambda: case(
        "Slice",
        {"x": draw(64, 100, 64), "a": numbers(10), "b": numbers(90), "c": numbers(1)},
        ["a", "b", "c"],
    ),
    "ScatterND": lambda: case(
        "ScatterND", {"x": draw(512, 256), "i": indices(512, 300, 1), "u": draw(300, 256)}, ["i:1"]
    ),
    "ScatterElements": lambda: case(
        "ScatterElements", {"x": draw(256, 256), "i": indices(256, 100, 256), "u": draw(100, 256)}
    ),
    "GatherND": lambda: case(
        "GatherND", {"x": draw(512, 64, 16), "i": indices(64, 5000, 2)}, ["i:1"]
    ),
    "GatherElements": lambda: case(
        "GatherElements", {"x": draw(256, 256), "i": indices(256, 256, 256)}
    ),
    "ReverseSequence": lambda: case(
        "ReverseSequence", {"x": draw(100, 16, 64), "n": indices(100, 16)}
    ),
    "Einsum bhqd,bhkd->bhqk": lambda: case(
        "Einsum", {"a": draw(2, 8, 128, 64), "b": draw(2, 8, 128, 64)}, equation="bhqd,bhkd->bhqk"
    ),
    "Einsum ij,jk,kl->il": lambda: case(
        "Einsum", {"a": draw(32, 32), "b": draw(32, 32), "c": draw(32, 32)}, equation="ij,jk,kl->il"
    ),
    "TopK": lambda: case(
        "TopK", {"x": draw(16, 8000), "k": numbers(50)}, ["k"], outputs=("y", "i")
    ),
    "NonZero": lambda: case("NonZero", {"x": (draw(300, 400) > 1).astype(np.float32)}),
    "Compress": lambda: case("Compress", {"x": draw(2000, 64), "c": draw(2000) > 0}, axis=0),
    "Unique": lambda: case("Unique", {"x": indices(500, 20000)}, outputs=("y", "i", "j", "n")),
    "NonMaxSuppression": lambda: case("NonMaxSuppression", detections(), ["b:2", "m", "t", "f"]),
    "RoiAlign": lambda: case(
        "RoiAlign",
        {
            "x": draw(1, 64, 50, 50),
            "r": np.float32([[5, 5, 40, 30]] * 50),
            "b": np.zeros(50, np.int64),
        },
        ["r:1"],
        output_height=7,
        output_width=7,
        sampling_ratio=2,
    ),
    "GridSample": lambda: case(
        "GridSample", {"x": draw(1, 32, 64, 64), "g": np.tanh(draw(1, 64, 64, 2))}, ["g:3"]
    ),
    "DeformConv": lambda: case(
        "DeformConv",
        {"x": draw(1, 16, 32, 32), "w": draw(16, 16, 3, 3), "o": draw(1, 18, 32, 32)},
        ["w", "x:1", "o:1"],
        pads=[1, 1, 1, 1],
    ),
    "ConvInteger, zero point": lambda: case(
        "ConvInteger",
        {
            "x": RNG.integers(0, 255, (1, 16, 56, 56)).astype(np.uint8),
            "w": RNG.integers(0, 255, (32, 16, 3, 3)).astype(np.uint8),
            "p": np.array(7, np.uint8),
        },
        ["w", "x:1"],
    ),
    "MatMulInteger, zero points": lambda: case(
        "MatMulInteger",
        {
            "a": RNG.integers(0, 255, (64, 256)).astype(np.uint8),
            "b": RNG.integers(0, 255, (256, 256)).astype(np.uint8),
            "p": np.array(7, np.uint8),
            "q": np.array(9, np.uint8),
        },
    ),
    "Resize, linear": lambda: case(
        "Resize",
        {"x": draw(2, 3, 100, 120), "r": draw(0), "s": np.float32([1, 1, 1.37, 1.37])},
        ["r", "s"],
        mode="linear",
    ),
    "Resize, nearest": lambda: case(
        "Resize",
        {"x": draw(1, 32, 56, 56), "r": draw(0), "s": np.float32([1, 1, 2, 2])},
        ["r", "s"],
        mode="nearest",
    ),
    "CumSum": lambda: case("CumSum", {"x": draw(200, 500), "a": np.array(1)}, ["a"]),
    "OneHot": lambda: case(
        "OneHot", {"i": indices(100, 2000), "d": numbers(100), "v": np.float32([0, 1])}, ["d", "v"]
    ),
    "Range": lambda: case("Range", {"a": np.array(0), "b": np.array(10000), "c": np.array(1)}),
    "Tile": lambda: case("Tile", {"x": draw(100, 100), "r": numbers(3, 4)}, ["r"]),
    "Expand": lambda: case("Expand", {"x": draw(100, 1, 64), "s": numbers(100, 50, 64)}, ["s"]),
    "Pad": lambda: case("Pad", {"x": draw(64, 100, 100), "p": numbers(0, 1, 2, 0, 3, 4)}, ["p"]),
    "ReduceSum, axes": lambda: case("ReduceSum", {"x": draw(64, 100, 64), "a": numbers(1)}, ["a"]),
    "ReduceProd": lambda: case("ReduceProd", {"x": draw(64, 100, 64)}),
    "ReduceMean, two axes": lambda: case(
        "ReduceMean", {"x": draw(64, 100, 64), "a": numbers(0, 2)}, ["a"]
    ),
    "ReduceMax, last axes": lambda: case(
        "ReduceMax", {"x": draw(64, 100, 64), "a": numbers(1, 2)}, ["a"]
    ),
    "ArgMax, int64": lambda: case("ArgMax", {"x": indices(1000, 100, 1000)}, axis=1),
    "Trilu, k": lambda: case("Trilu", {"x": draw(8, 128, 128), "k": np.array(1)}, ["k"]),
}


def measure(name: str, threads: int, seconds: float) -> tuple[float, float, float]:
    """Return the median seconds of hagane and ONNX Runtime, and the median ratio of pairs."""
    import onnxruntime

    proto, feed = CASES[name]()
    own = hagane.SessionOptions()
    own.intra_op_num_threads = threads
    other = onnxruntime.SessionOptions()
    other.intra_op_num_threads = threads
    other.log_severity_level = 3
    other.add_session_config_entry("session.intra_op.allow_spinning", "0")
    engines = [
        hagane.InferenceSession(proto, own),
        onnxruntime.InferenceSession(proto.SerializeToString(), other),
    ]
    got, want = (engine.run(None, feed) for engine in engines)
    for left, right in zip(got, want, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-2, atol=1e-2 * np.abs(right).max(initial=1))
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        pair = []
        for engine in engines:
            started = time.perf_counter()
            engine.run(None, feed)
            pair.append(time.perf_counter() - started)
        times.append((pair[0], pair[1]))
    ratio = statistics.median(other / own for own, other in times)
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times), ratio


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="cases; all if none is named")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case and thread count")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    chosen = [
        name for name in CASES if not arguments.names or any(n in name for n in arguments.names)
    ]
    for threads in arguments.threads:
        print(f"| threads: {threads} | hagane, ms | ONNX Runtime, ms | ratio |")
        print("|---|---|---|---|")
        ratios = []
        for name in chosen:
            own, other, ratio = measure(name, threads, arguments.seconds)
            ratios.append(ratio)
            print(f"| {name} | {own * 1e3:.3f} | {other * 1e3:.3f} | {ratio:.2f} |", flush=True)
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"| geometric mean | | | {mean:.2f} |\n")


if __name__ == "__main__":
    main()
