"""The code of a layer does not grow with its image, and its tiles are those of smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from hagane.native.kernels.kernel import Kernel
from hagane.native.plan import partition
from hagane.native.tiles import contraction, register_loops
from hagane.native.tiles.contraction import Pixels, Tiling
from tests.native.models import RUNNABLE, draw, model, session

LEVEL = [name for name in RUNNABLE if name != "amx"][-1]

# Operator, shape of the weights (None: none), attributes.
LAYERS: list[tuple[str, tuple[int, ...] | None, dict[str, Any]]] = [
    ("Conv", (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ("Conv", (40, 3, 3, 3), {"strides": [2, 2]}),
    ("Conv", (40, 3, 1, 1), {}),
    ("ConvTranspose", (3, 4, 3, 3), {"strides": [3, 3]}),
    ("ConvTranspose", (3, 4, 3, 3), {"strides": [2, 2]}),
    ("ConvTranspose", (3, 4, 2, 2), {"strides": [5, 5]}),
    ("MaxPool", None, {"kernel_shape": [3, 3]}),
]


def layer(
    op: str, weight: tuple[int, ...] | None, attributes: dict[str, Any], height: int, width: int
) -> onnx.ModelProto:
    x = {"x": np.broadcast_to(np.float32(0), (1, 3, height, width))}
    constants = {} if weight is None else {"w": draw(weight)}
    return model(
        [helper.make_node(op, ["x", *constants], ["y"], "it", **attributes)], x, ["y"], constants
    )


class Written(Exception):
    """Code was written, and need not be compiled."""


def characters(monkeypatch: pytest.MonkeyPatch, proto: onnx.ModelProto) -> int:
    """Return the length of the code of a model."""

    def stop(kernels: Sequence[Kernel], *_: Any, **__: Any) -> None:
        raise Written(sum(len(kernel.code) for kernel in kernels))

    with monkeypatch.context() as patch:
        patch.setattr(partition, "compile_kernels", stop)
        with pytest.raises(Written) as written:
            session(proto, instructions=LEVEL)
    (count,) = written.value.args
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize(("op", "weight", "attributes"), LAYERS)
def test_the_code_of_a_layer_does_not_grow_with_its_image(
    op: str,
    weight: tuple[int, ...] | None,
    attributes: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = characters(monkeypatch, layer(op, weight, attributes, 50, 70))
    for sides in ((2500, 2700), (25_000, 270_000)):
        # A table of its tiles would be as long as the image is large.
        assert characters(monkeypatch, layer(op, weight, attributes, *sides)) < 2 * plain + 20_000


def test_the_code_of_a_product_does_not_grow_with_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = []
    for rows in (100, 10**6, 10**9):
        x = {"x": np.broadcast_to(np.float32(0), (rows, 40))}
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        lengths.append(characters(monkeypatch, model([node], x, ["y"], {"w": draw((40, 50))})))
    assert max(lengths) < 2 * lengths[0] + 20_000


def test_a_stride_of_a_million_is_loaded() -> None:
    x = {"x": draw((1, 1, 3, 3))}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "it", strides=[10**6, 10**6])
    loaded = session(model([node], x, ["y"], {"w": draw((1, 1, 2, 2))}))
    with pytest.raises(MemoryError, match="ConvTranspose 'it'"):
        loaded.run(None, x)


@pytest.mark.parametrize("seed", range(4))
def test_tiles_that_are_computed_are_those_of_a_table(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(contraction, "MOST_LISTED", 0)
    monkeypatch.setattr(register_loops, "MOST_LISTED", 0)
    # Images that are narrower than a tile, and wider ones.
    height, width = int(random.integers(5, 40)), int(random.integers(3, (9, 90)[seed % 2]))
    channels, maps = (int(n) for n in random.integers(17, 40, 2))
    kernel, stride = int(random.integers(1, 4)), int(random.integers(1, 3))
    x = draw((2, channels, height, width), seed)
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[kernel // 2] * 4
        ),
        helper.make_node("Conv", ["c", "v"], ["d"]),
        helper.make_node("Add", ["c", "d"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    weights = {
        "w": draw((maps, channels, kernel, kernel), 1), "b": draw((maps,), 2),
        "v": draw((maps, maps, 1, 1), 3),
    }  # fmt: skip
    proto = model(nodes, {"x": x}, ["y"], weights)
    (found,) = session(proto).run(None, {"x": x})
    theirs = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = theirs.run(None, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("row", "rows"), [(0, 1), (1, 7), (27, 9), (28, 9), (29, 3), (1000, 4)])
@pytest.mark.parametrize("listed", [0, 1 << 12])
def test_tiles_hold_each_pixel_once(
    row: int, rows: int, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contraction, "MOST_LISTED", listed)
    count = (row or 57) * rows
    tiling = Tiling.of(Pixels(int, int, None, count, row), 28)
    tiles = [tiling[number] for number in range(len(tiling))]
    assert [pixel for first, size in tiles for pixel in range(first, first + size)] == list(
        range(count)
    )
    assert max(size for _, size in tiles) <= 28
    with pytest.raises(IndexError):
        tiling[len(tiling)]
