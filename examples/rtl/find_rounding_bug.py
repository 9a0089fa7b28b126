"""Finds a planted rounding bug in an int8 requantiser.

Run: ``python examples/rtl/find_rounding_bug.py``. The circuit should divide by a power of two as
QuantizeLinear does, ties to even. The search looks for inputs that break that rule and for inputs
that reach every point; the golden values of hagane's own 8-bit kernels then judge each row of the
test set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import hagane
from hagane.tools.rtl import Budget, Result, cover, read_sources

# Where nothing was clipped, what a tie gives is even.
TIES_GO_TO_EVEN = "!(rest == half && shift != 0 && out == rounded) || !rounded[0]"


def golden_session() -> hagane.InferenceSession:
    """Return QuantizeLinear with a scale an element and a zero point of 0, then ReLU, natively."""
    nodes = [
        helper.make_node("QuantizeLinear", ["acc", "scale", "zero"], ["quantized"], axis=0),
        helper.make_node("Relu", ["quantized"], ["rectified"]),
    ]
    inputs = [
        helper.make_tensor_value_info("acc", TensorProto.FLOAT, ["rows"]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, ["rows"]),
        helper.make_tensor_value_info("zero", TensorProto.INT8, ["rows"]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.INT8, ["rows"])
        for name in ("quantized", "rectified")
    ]
    graph = helper.make_graph(nodes, "requantise", inputs, outputs)
    opsets = [helper.make_opsetid("", 21)]
    return hagane.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def wrong_rows(result: Result) -> list[str]:
    """Return the rows whose replayed output is not the golden value."""
    rows = [
        (number, row, output)
        for number, (test, outputs) in enumerate(zip(result.tests, result.outputs, strict=True))
        for row, output in zip(test, outputs, strict=True)
    ]
    accs = [row["acc"] - (1 << 24) * (row["acc"] >> 23) for _, row, _ in rows]
    feeds = {
        "acc": np.float32(accs),  # 24 bits, which float32 holds exactly
        "scale": np.float32([2.0 ** row["shift"] for _, row, _ in rows]),
        "zero": np.zeros(len(rows), np.int8),
    }
    quantized, rectified = golden_session().run(None, feeds)
    wrong = []
    for (number, row, output), acc, plain, clipped in zip(
        rows, accs, quantized, rectified, strict=True
    ):
        got = output["out"] - (1 << 8) * (output["out"] >> 7)
        expected = int(clipped if row["relu"] else plain)
        if got != expected:
            wrong.append(f"test {number}: {acc} >> {row['shift']} gives {got}, expected {expected}")
    return wrong


def main() -> None:
    folder = Path(__file__).parent
    for defines in ([], ["PLANTED_BUG"]):
        sources = read_sources([folder / "requant.sv"], "requant", defines=defines)
        result = cover(sources, Budget(30.0), assertions=[TIES_GO_TO_EVEN])
        print(f"{' '.join(defines) or 'as written'}: {len(result.tests)} tests, "
              f"ties go to even: {result.assertions[0].status}")  # fmt: skip
        for line in wrong_rows(result):
            print(f"  {line}")


if __name__ == "__main__":
    main()
