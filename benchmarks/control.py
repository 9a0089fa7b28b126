"""Loops, branches and scans beside ONNX Runtime, each engine in a process of its own.

``python benchmarks/control.py [NAME …] [--threads 1 2] [--rounds 5]`` prints ONNX Runtime's time
over hagane's: medians of rounds that alternate, and minima, which other programs on the machine
disturb less.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hagane.runtime.bench import compare

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH, STEPS = 64, 128


def value(name: str, kind: int = FLOAT, shape: Sequence[int | str] = ()) -> onnx.ValueInfoProto:
    """Return a declared value."""
    return helper.make_tensor_value_info(name, kind, shape)


def body(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, np.ndarray] | None = None,
) -> onnx.GraphProto:
    """Return a graph, for a body or a model."""
    kept = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs), kept)


def loop(
    nodes: Sequence[onnx.NodeProto],
    state: Mapping[str, tuple[str, Sequence[int | str]]],
    scanned: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, np.ndarray] | None = None,
    *,
    limit: str = "turns",
    condition: str = "",
) -> onnx.GraphProto:
    """Return the body of a Loop over float states: each named with its successor and shape."""
    nodes = list(nodes)
    if not condition:
        nodes.append(helper.make_node("Identity", ["go"], ["goes"]))
    inputs = [value("i", INT64), value("go", BOOL)]
    inputs += [value(name, shape=shape) for name, (_, shape) in state.items()]
    outputs = [value(condition or "goes", BOOL)]
    outputs += [value(after, shape=shape) for after, shape in state.values()]
    outputs += [value(name, shape=shape) for name, shape in (scanned or {}).items()]
    return body(nodes, inputs, outputs, constants)


def node(kind: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    """Return a node; names are separated by blanks, ``-`` is an absent input."""
    read = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, read, outputs.split(), outputs, **attributes)


def counter() -> onnx.GraphProto:
    """1,000 turns of a body of two scalar operators."""
    inner = loop(
        [node("Mul", "s decay", "m"), node("Add", "m x", "t")],
        {"s": ("t", ())},
        constants={"decay": np.float32(0.99)},
    )
    return body(
        [node("Loop", "turns - x", "y", body=inner)],
        [value("x")],
        [value("y")],
        {"turns": np.int64(1000)},
    )


def product() -> onnx.GraphProto:
    """100 turns of a matrix product, all results kept."""
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16
    inner = loop(
        [node("MatMul", "h w", "p"), node("Add", "p x", "t"), node("Identity", "t", "kept")],
        {"h": ("t", (WIDTH, WIDTH))},
        {"kept": (WIDTH, WIDTH)},
        {"w": weight},
    )
    return body(
        [node("Loop", "turns - x", "y all", body=inner)],
        [value("x", shape=(WIDTH, WIDTH))],
        [value("y", shape=(WIDTH, WIDTH)), value("all", shape=(100, WIDTH, WIDTH))],
        {"turns": np.int64(100)},
    )


def cell() -> onnx.GraphProto:
    """A Scan of a recurrent cell over 128 steps."""
    random = np.random.default_rng(0)
    weights = {
        name: random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16 for name in "wr"
    }
    inner = body(
        [
            node("MatMul", "x w", "a"),
            node("MatMul", "h r", "b"),
            node("Add", "a b", "c"),
            node("Tanh", "c", "t"),
            node("Identity", "t", "kept"),
        ],
        [value("h", shape=(1, WIDTH)), value("x", shape=(1, WIDTH))],
        [value("t", shape=(1, WIDTH)), value("kept", shape=(1, WIDTH))],
        weights,
    )
    return body(
        [node("Scan", "h0 xs", "y all", body=inner, num_scan_inputs=1)],
        [value("h0", shape=(1, WIDTH)), value("xs", shape=(STEPS, 1, WIDTH))],
        [value("y", shape=(1, WIDTH)), value("all", shape=(STEPS, 1, WIDTH))],
    )


def branch() -> onnx.GraphProto:
    """1,000 turns that take two branches in turn."""
    then = body([node("Add", "s x", "left")], [], [value("left")])
    other = body([node("Mul", "s half", "right")], [], [value("right")])
    inner = loop(
        [
            node("Mod", "i two", "odd"),
            node("Equal", "odd zero", "even"),
            node("If", "even", "t", then_branch=then, else_branch=other),
        ],
        {"s": ("t", ())},
        constants={"two": np.int64(2), "zero": np.int64(0), "half": np.float32(0.5)},
    )
    return body(
        [node("Loop", "turns - x", "y", body=inner)],
        [value("x")],
        [value("y")],
        {"turns": np.int64(1000)},
    )


def nested() -> onnx.GraphProto:
    """30 turns of 30 turns."""
    inner = loop([node("Sin", "r", "q"), node("Add", "q x", "p")], {"r": ("p", (8,))})
    # The body of the inner loop has names of its own for the turn and the condition.
    names = {"i": "j", "go": "on", "goes": "on_next"}
    for item in (*inner.input, *inner.output):
        item.name = names.get(item.name, item.name)
    for each in inner.node:
        each.input[:] = [names.get(name, name) for name in each.input]
        each.output[:] = [names.get(name, name) for name in each.output]
    outer = loop([node("Loop", "turns - s", "t", body=inner)], {"s": ("t", (8,))})
    return body(
        [node("Loop", "turns - x", "y", body=outer)],
        [value("x", shape=(8,))],
        [value("y", shape=(8,))],
        {"turns": np.int64(30)},
    )


def growing() -> onnx.GraphProto:
    """100 turns that each add a row to what they carry."""
    inner = loop([node("Concat", "s x", "t", axis=0)], {"s": ("t", ("rows", WIDTH))})
    return body(
        [node("Loop", "turns - x", "y", body=inner)],
        [value("x", shape=(1, WIDTH))],
        [value("y", shape=("rows", WIDTH))],
        {"turns": np.int64(100)},
    )


HEADS, DEPTH = 4, 16


def cache() -> onnx.GraphProto:
    """64 turns of a layer that attends to the keys and values of all turns before."""
    random = np.random.default_rng(0)
    names = ("query", "key", "value", "out")
    weights = {n: random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 8 for n in names}
    row = np.array([1, 1, HEADS, DEPTH])
    nodes = []
    for name in names[:3]:
        nodes += [
            node("MatMul", f"s {name}", f"{name}_row"),
            node("Reshape", f"{name}_row heads", f"{name}_heads"),
            node("Transpose", f"{name}_heads", f"{name}_new", perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Concat", "keys key_new", "keys_now", axis=2),
        node("Concat", "values value_new", "values_now", axis=2),
        node("Transpose", "keys_now", "keys_turned", perm=[0, 1, 3, 2]),
        node("MatMul", "query_new keys_turned", "products"),
        node("Mul", "products scale", "scores"),
        node("Softmax", "scores", "shares", axis=-1),
        node("MatMul", "shares values_now", "mixed"),
        node("Transpose", "mixed", "mixed_row", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed_row flat", "mixed_flat"),
        node("MatMul", "mixed_flat out", "left"),
        node("Add", "left s", "sum"),
        node("Tanh", "sum", "t"),
    ]
    past = (1, HEADS, "past", DEPTH)
    inner = loop(
        nodes,
        {"s": ("t", (1, 1, WIDTH)), "keys": ("keys_now", past), "values": ("values_now", past)},
        constants={
            **weights,
            "heads": row,
            "flat": np.array([1, 1, WIDTH]),
            "scale": np.float32(DEPTH**-0.5),
        },
    )
    return body(
        [node("Loop", "turns - x none none", "y all_keys all_values", body=inner)],
        [value("x", shape=(1, 1, WIDTH))],
        [
            value("y", shape=(1, 1, WIDTH)),
            value("all_keys", shape=(1, HEADS, "all", DEPTH)),
            value("all_values", shape=(1, HEADS, "all", DEPTH)),
        ],
        {"turns": np.int64(64), "none": np.zeros((1, HEADS, 0, DEPTH), np.float32)},
    )


def early() -> onnx.GraphProto:
    """A loop without a limit that ends after 500 turns, and keeps what each computed."""
    inner = loop(
        [
            node("Add", "s one", "t"),
            node("Less", "t bound", "less"),
            node("Mul", "x t", "kept"),
        ],
        {"s": ("t", ())},
        {"kept": (8,)},
        {"one": np.float32(1), "bound": np.float32(500)},
        condition="less",
    )
    return body(
        [node("Loop", "- - zero", "y all", body=inner)],
        [value("x", shape=(8,))],
        [value("y"), helper.make_tensor_value_info("all", FLOAT, ["turns", 8])],
        {"zero": np.float32(0)},
    )


def outer() -> onnx.GraphProto:
    """1,000 turns whose body reads values and constants from outside and from inside."""
    random = np.random.default_rng(0)
    inner = loop(
        [
            node("Mul", "s gain", "a"),
            node("Add", "a base", "b"),
            node("Mul", "b scale", "c"),
            node("Tanh", "c", "t"),
        ],
        {"s": ("t", (WIDTH,))},
        constants={"gain": random.standard_normal(WIDTH).astype(np.float32)},
    )
    return body(
        [node("Exp", "x", "base"), node("Loop", "turns - x", "y", body=inner)],
        [value("x", shape=(WIDTH,))],
        [value("y", shape=(WIDTH,))],
        {"turns": np.int64(1000), "scale": random.standard_normal(WIDTH).astype(np.float32)},
    )


CASES: dict[str, Callable[[], onnx.GraphProto]] = {
    each.__name__: each
    for each in (counter, product, cell, branch, nested, growing, cache, early, outer)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    arguments = parser.parse_args()
    print("| case | threads | hagane ms | ONNX Runtime ÷ hagane | of minima |")
    print("|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names:
            path = Path(folder) / f"{name}.onnx"
            opset = [helper.make_opsetid("", 21)]
            onnx.save(helper.make_model(CASES[name](), opset_imports=opset, ir_version=10), path)
            for threads in arguments.threads:
                found = compare(
                    path,
                    ("hagane", "onnxruntime"),
                    {},
                    threads,
                    arguments.rounds,
                    arguments.seconds,
                )
                own, other = found["results"]
                ratio = found["ratios"]["onnxruntime/hagane"]
                least = other["min_ms"] / own["min_ms"]
                print(
                    f"| {name} | {threads} | {own['median_ms']:.4f} | {ratio:.2f} | {least:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
