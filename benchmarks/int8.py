"""8-bit products and convolutions beside ONNX Runtime's, in one run.

Run: ``python benchmarks/int8.py``. Each figure is ONNX Runtime's median over hagane's, rounds
alternating; both get the same model and input, and their outputs are compared first. One thread:
the workers of ONNX Runtime keep a core busy after a run, which in one process is taken from us.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

import hagane

ROUNDS, RUNS = 15, 20
# Without VNNI, ONNX Runtime cuts sums of two products off at 16 bits: these weights stay below.
LARGEST = 63


def product(rows: int, k: int, n: int) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Return MatMulInteger of unsigned rows and signed weights."""
    random = np.random.default_rng(0)
    weight = random.integers(-LARGEST, LARGEST + 1, (k, n)).astype(np.int8)
    rows_ = random.integers(0, 256, (rows, k)).astype(np.uint8)
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    constants = {"b": weight, "za": np.uint8(113).reshape(()), "zb": np.int8(0).reshape(())}
    return model(node, {"a": rows_}, constants, TensorProto.INT32), {"a": rows_}


def convolution(channels: int, maps: int, size: int) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Return QLinearConv with a 3x3 kernel."""
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (1, channels, size, size)).astype(np.uint8)
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])
    constants = {
        "sx": np.float32(0.02), "zx": np.uint8(113),
        "w": random.integers(-LARGEST, LARGEST + 1, (maps, channels, 3, 3)).astype(np.int8),
        "sw": np.float32(0.01), "zw": np.int8(0), "sy": np.float32(1.5), "zy": np.uint8(100),
    }  # fmt: skip
    return model(node, {"x": x}, constants, TensorProto.UINT8), {"x": x}


def model(
    node: Any, inputs: dict[str, np.ndarray], constants: dict[str, Any], result: int
) -> ModelProto:
    """Return a model of one node."""
    graph = helper.make_graph(
        [node],
        "int8",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    cases = {
        "MatMulInteger 128x768x3072": product(128, 768, 3072),
        "MatMulInteger 1x768x3072": product(1, 768, 3072),
        "QLinearConv 64 to 64, 56x56": convolution(64, 64, 56),
        "QLinearConv 256 to 256, 14x14": convolution(256, 256, 14),
    }
    for name, (proto, feeds) in cases.items():
        sessions = []
        for module in (onnxruntime, hagane):
            options = module.SessionOptions()
            options.intra_op_num_threads = threads
            data = proto.SerializeToString()
            sessions.append(
                module.InferenceSession(data, options, providers=["CPUExecutionProvider"])
            )
        outputs = [session.run(None, feeds)[0] for session in sessions]
        assert np.max(np.abs(outputs[0].astype(np.int64) - outputs[1])) <= 1
        seconds: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for session, found in zip(sessions, seconds, strict=True):
                start = time.perf_counter()
                for _ in range(RUNS):
                    session.run(None, feeds)
                found.append((time.perf_counter() - start) / RUNS)
        theirs, ours = (statistics.median(found) for found in seconds)
        print(f"{name}: ONNX Runtime / hagane {theirs / ours:.2f} ({ours * 1e6:.0f} us here)")


if __name__ == "__main__":
    main()
