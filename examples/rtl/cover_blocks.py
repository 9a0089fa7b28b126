"""Tests the blocks that an int8 layer is made of: multiply-accumulate, requantisation, ReLU.

Run: ``python examples/rtl/cover_blocks.py``. The array of multipliers lies beside this file; the
other two blocks are those of the package ``logikbench``. For each, the search looks for tests that
reach every point, and each row of the replay is compared: the array's products with hagane's own
8-bit product, the rest with what NumPy gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.tools.rtl import Budget, Result, Sources, cover, read_sources

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))

Rows = Iterator[tuple[int, Mapping[str, int], Mapping[str, int]]]
SUM_BITS = 18


def signed(number: int, width: int) -> int:
    """Return what ``width`` bits mean in two's complement."""
    return number - (number >> (width - 1) << width)


def rows_of(result: Result) -> Rows:
    """Yield test, inputs and replayed outputs of every row."""
    for number, (test, outputs) in enumerate(zip(result.tests, result.outputs, strict=True)):
        for row, output in zip(test, outputs, strict=True):
            yield number, row, output


def int8_product(weights: np.ndarray, inputs: np.ndarray) -> int:
    """Return the sum of products by hagane's native kernel of MatMulInteger."""
    node = helper.make_node("MatMulInteger", ["inputs", "weights"], ["sum"])
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("inputs", TensorProto.INT8, [1, 4])],
        [helper.make_tensor_value_info("sum", TensorProto.INT32, [1, 1])],
        [numpy_helper.from_array(weights.reshape(4, 1), "weights")],
    )
    opsets = [helper.make_opsetid("", 21)]
    session = hagane.InferenceSession(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    return int(session.run(None, {"inputs": inputs.reshape(1, 4)})[0][0, 0])


def wrong_sums(result: Result) -> list[str]:
    """Return the rows in which the array's sum is not that of the 8-bit product, saturated."""
    most = (1 << (SUM_BITS - 1)) - 1
    wrong, total, saturated = [], 0, 0
    for number, row, output in rows_of(result):
        if not row["rst_n"]:
            total = saturated = 0
        got = signed(output["sum"], SUM_BITS), output["saturated"]
        if got != (total, saturated):
            wrong.append(f"test {number}: the sum is {got}, expected {(total, saturated)}")
            total, saturated = got
        weights, inputs = (
            np.array([signed(row.get(f"{name}[{lane}]", 0), 8) for lane in range(4)], np.int8)
            for name in ("weights", "inputs")
        )
        if row.get("clear"):
            total = saturated = 0
        elif row.get("valid"):
            exact = total + int8_product(weights, inputs)
            total = int(np.clip(exact, -most - 1, most))
            saturated = saturated or int(exact != total)
    return wrong


def wrong_requantised(result: Result) -> list[str]:
    """Return the rows whose result is not the product over 2**shift, rounded and saturated.

    A tie goes up, and away from zero below -128 ties.
    """
    wrong = []
    for number, row, output in rows_of(result):
        acc, scale, shift = signed(row["acc"], 32), signed(row["scale"], 16), row["shift"]
        product = acc * scale
        whole, rest = divmod(product, 1 << shift)
        twice = 2 * rest
        up = twice > 1 << shift or (twice == 1 << shift and product >= 0)
        expected = max(-128, min(127, whole + int(bool(shift) and up)))
        got = signed(output["out"], 8)
        if got != expected:
            wrong.append(
                f"test {number}: {acc} * {scale} >> {shift} gives {got}, expected {expected}"
            )
    return wrong


def wrong_relu(result: Result) -> list[str]:
    """Return the rows whose result is not the larger of the input and 0."""
    return [
        f"test {number}: relu({signed(row['in'], 16)}) gives {signed(output['out'], 16)}"
        for number, row, output in rows_of(result)
        if signed(output["out"], 16) != np.maximum(signed(row["in"], 16), 0)
    ]


def sources_of(block: str) -> Sources:
    """Return the sources of a block, fetched where need be."""
    if block == "mac_array":
        return read_sources([FOLDER / "mac_array.sv"], block)
    from fetch import fetch

    arithmetic = fetch("logikbench==1.0.0") / "logikbench/benchmarks/arithmetic"
    return read_sources([arithmetic / block / "rtl" / f"{block}.v"], block)


BLOCKS: dict[str, Callable[[Result], list[str]]] = {
    "mac_array": wrong_sums,
    "requant": wrong_requantised,
    "relu": wrong_relu,
}


def main() -> None:
    for block, wrong in BLOCKS.items():
        result = cover(sources_of(block), Budget(60.0))
        counts = result.counts().values()
        covered, dead, unknown = (
            sum(row[word] for row in counts) for word in ("covered", "dead", "unknown")
        )
        print(
            f"{block}: {covered} points covered, {dead} dead, {unknown} unknown, "
            f"{len(result.tests)} tests of {sum(map(len, result.tests))} rows"
        )
        for line in wrong(result):
            print(f"  {line}")


if __name__ == "__main__":
    main()
