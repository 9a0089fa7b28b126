"""The examples: a requantiser against QuantizeLinear of the onnx package, and other blocks."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hagane.tools.rtl import Budget, cover, read_sources

EXAMPLES = Path(__file__).parents[3] / "examples" / "rtl"
sys.path.insert(0, str(EXAMPLES))

from cover_blocks import BLOCKS, sources_of  # noqa: E402
from find_rounding_bug import TIES_GO_TO_EVEN, golden_session, wrong_rows  # noqa: E402


def test_the_golden_values_are_quantize_linear_from_native_kernels() -> None:
    onnx = pytest.importorskip("onnx")
    from onnx.reference.ops.op_quantize_linear import QuantizeLinear_19

    del onnx
    generator = np.random.default_rng(3)
    session = golden_session()
    for shift in range(16):
        acc = generator.integers(-(2**23), 2**23, 200) >> generator.integers(0, 20, 200)
        scale = np.float64(2.0**shift)
        expected = QuantizeLinear_19.eval(acc.astype(np.float64), scale, np.int8(0))
        feeds = {
            "acc": acc.astype(np.float32),
            "scale": np.full(len(acc), scale, np.float32),
            "zero": np.zeros(len(acc), np.int8),
        }
        quantized, rectified = session.run(None, feeds)
        assert quantized.tolist() == expected.tolist()
        assert rectified.tolist() == np.maximum(expected, 0).tolist()
    assert session._programs.refused == {}


@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize("planted", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_test_set_finds_the_planted_rounding_bug_and_no_other(planted: bool) -> None:
    defines = ["PLANTED_BUG"] if planted else []
    sources = read_sources([EXAMPLES / "requant.sv"], "requant", defines=defines)
    result = cover(sources, Budget(300.0), assertions=[TIES_GO_TO_EVEN])
    assert result.defects == []
    assert result.assertions[0].status == ("violated" if planted else "proved")
    assert bool(wrong_rows(result)) is planted


@pytest.mark.long
@pytest.mark.fetches
@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize("block", list(BLOCKS))
def test_a_block_of_an_int8_layer_is_covered_and_right(block: str) -> None:
    result = cover(sources_of(block), Budget(300.0))
    counts = result.counts()
    assert {kind: row["unknown"] for kind, row in counts.items()} == dict.fromkeys(counts, 0)
    assert result.defects == []
    assert BLOCKS[block](result) == []
    # The same comparison finds a wrong output.
    name = {"mac_array": "sum"}.get(block, "out")
    result.outputs[-1][-1][name] ^= 1
    (wrong,) = BLOCKS[block](result)
    assert wrong.startswith(f"test {len(result.tests) - 1}: ")
