"""Operators in models of their own, with open sizes, beside ONNX Runtime.

``python -m benchmarks.operators [NAME…] [--odd] [--seconds 1]`` prints, on one thread and on two,
the time of each engine and ONNX Runtime's over hagane's; ``--odd`` takes the cases of
``odd_operators.py``. Both engines are in one process and take turns, a run each; threads of ONNX
Runtime do not spin. The median of the pairs' ratios is shown.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from benchmarks.odd_operators import ODD
from benchmarks.operator_models import RNG, Feed, case, draw, indices, model, numbers, trees

import hagane


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


EVERY = {**CASES, **ODD}


def engines(name: str, threads: int) -> tuple[list[Any], Feed]:
    """Return sessions of hagane and of ONNX Runtime, which agree, and their feed."""
    import onnxruntime

    proto, feed = EVERY[name]()
    own = hagane.SessionOptions()
    own.intra_op_num_threads = threads
    other = onnxruntime.SessionOptions()
    other.intra_op_num_threads = threads
    other.log_severity_level = 3
    other.add_session_config_entry("session.intra_op.allow_spinning", "0")
    found = [
        onnxruntime.InferenceSession(proto.SerializeToString(), other),
        hagane.InferenceSession(proto, own),
    ]
    want, got = (engine.run(None, feed) for engine in found)
    for left, right in zip(got, want, strict=True):
        limit = 1e-2 * np.nan_to_num(np.abs(right)).max(initial=1)
        np.testing.assert_allclose(left, right, rtol=1e-2, atol=limit)
    return found[::-1], feed


def measure(found: list[Any], feed: Feed, seconds: float) -> tuple[float, float, float]:
    """Return the median seconds of hagane and ONNX Runtime, and the median ratio of pairs."""
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        pair = []
        for engine in found:
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
    parser.add_argument("--odd", action="store_true", help="other types, odd sizes, loops")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case and thread count")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    cases = ODD if arguments.odd else EVERY if arguments.names else CASES
    chosen = [
        name for name in cases if not arguments.names or any(n in name for n in arguments.names)
    ]
    for threads in arguments.threads:
        print(f"| threads: {threads} | hagane, ms | ONNX Runtime, ms | ratio |")
        print("|---|---|---|---|")
        ratios = []
        for name in chosen:
            own, other, ratio = measure(*engines(name, threads), arguments.seconds)
            ratios.append(ratio)
            print(f"| {name} | {own * 1e3:.3f} | {other * 1e3:.3f} | {ratio:.2f} |", flush=True)
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"| geometric mean | | | {mean:.2f} |\n")


if __name__ == "__main__":
    main()
