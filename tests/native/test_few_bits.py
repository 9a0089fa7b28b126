"""MatMulNBits: weights of few bits that stay packed, and rows of bytes where these may be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.ops.contrib.weights import unpack
from tests.native.models import model, refused, session
from tests.native.written import natively, node

RNG = np.random.default_rng(0)
ROWS = (1, 2, 3, 4, 7, 9, 30, 101, 0)
Arrays = Mapping[str, np.ndarray]


def weights(n: int, k: int, bits: int, block: int, dtype: str = "float32") -> Arrays:
    """Return weights, scales and packed zero points."""
    blocks = -(-k // block)
    return {
        "b": RNG.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        "s": RNG.random(n * blocks).astype(dtype) / 10,
        "z": RNG.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8),
    }


def product_of(
    constants: Arrays, feed: Arrays, inputs: Sequence[str], **attributes: int
) -> onnx.ModelProto:
    """Return a model of one product with an open number of rows."""
    shapes: dict[str, Sequence[int | str]] = {key: list(x.shape) for key, x in feed.items()}
    made = node("com.microsoft:MatMulNBits", inputs, **attributes)
    proto = model([made], feed, ["y"], constants, shapes | {"x": ["rows", attributes["K"]]})
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def agrees(got: np.ndarray, want: np.ndarray, most: float) -> None:
    """Fail if results differ by more than a share of the largest."""
    assert got.dtype == want.dtype
    scale = np.abs(want).max(initial=1)
    np.testing.assert_allclose(got / scale, want / scale, atol=most)


@pytest.mark.parametrize(
    ("bits", "block", "dtype", "varying"),
    [
        (4, 32, "float32", ""), (8, 32, "float16", ""), (4, 128, "float32", ""),
        (2, 16, "float32", ""), (4, 256, "float32", ""), (4, 16, "float32", "bs"),
        (2, 32, "float16", "bsz"),
    ],
)  # fmt: skip
def test_weights_of_few_bits_stay_packed(bits: int, block: int, dtype: str, varying: str) -> None:
    k, n = 201, 37
    given = weights(n, k, bits, block, dtype)
    constants = {key: x for key, x in given.items() if key not in varying}
    fed = {key: x for key, x in given.items() if key in varying}
    bias = RNG.standard_normal(n).astype(dtype)
    first = {"x": RNG.standard_normal((1, k)).astype(dtype)} | fed
    proto = product_of(
        constants | {"bias": bias}, first, ["x", "b", "s", "z", "", "bias"],
        K=k, N=n, bits=bits, block_size=block,
    )  # fmt: skip
    native, reference = session(proto), session(proto, engine="reference")
    assert refused(native) == {}
    with natively():
        for rows in ROWS:
            feed = {"x": RNG.standard_normal((rows, k)).astype(dtype)} | fed
            (got,), (want,) = native.run(None, feed), reference.run(None, feed)
            agrees(got, want, 1e-5 if dtype == "float32" else 2e-3)


@pytest.mark.parametrize(("bits", "block"), [(4, 32), (4, 128), (8, 16), (2, 64)])
@pytest.mark.parametrize("zeros", ["", "bytes", "floats"])
def test_rows_become_bytes_where_the_model_allows_for_it(bits: int, block: int, zeros: str) -> None:
    if not _multiplies_bytes():
        pytest.skip("no products of bytes")
    k, n = 200, 75
    given = dict(weights(n, k, bits, block))
    blocks = -(-k // block)
    points = np.full((n, blocks), 1 << (bits - 1), np.float32)
    if zeros == "floats":
        given["z"] = points = RNG.standard_normal((n, blocks)).astype(np.float32)
    elif zeros == "bytes":
        points = unpack(given["z"].reshape(n, -1), bits)[:, :blocks]
    x = RNG.standard_normal((ROWS[-2], k)).astype(np.float32)
    x[3] = 0
    proto = product_of(
        given, {"x": x}, ["x", "b", "s", *(["z"] if zeros else [])],
        K=k, N=n, bits=bits, block_size=block, accuracy_level=4,
    )  # fmt: skip
    native = session(proto)
    assert refused(native) == {}
    numbers = unpack(given["b"].reshape(n, blocks, -1), bits) - points[:, :, None]
    real = (numbers * given["s"].reshape(n, blocks, 1)).reshape(n, -1)[:, :k]
    filled = np.pad(x, ((0, 0), (0, blocks * block - k))).reshape(len(x), blocks, block)
    most = np.abs(filled).max(-1, keepdims=True)
    inverse = np.float32(127) / np.where(most == 0, 1, most)
    rounded = np.round(filled * inverse) * (most / 127)
    with natively():
        for rows in ROWS:
            (got,) = native.run(None, {"x": x[:rows]})
            want = rounded.reshape(len(x), -1)[:rows, :k].astype(np.float64) @ real.T
            agrees(got, want.astype(np.float32), 2e-5)


def test_rows_of_bytes_keep_what_is_no_number() -> None:
    k = 64
    x = np.ones((3, k), np.float32)
    x[1, 5] = np.nan
    proto = product_of(
        weights(8, k, 4, 32), {"x": x}, ["x", "b", "s"],
        K=k, N=8, bits=4, block_size=32, accuracy_level=4,
    )  # fmt: skip
    (got,) = session(proto).run(None, {"x": x})
    assert np.isnan(got).any(axis=1).tolist() == [False, True, False]
    assert np.isnan(got[1]).all()


def _multiplies_bytes() -> bool:
    from hagane.machine import level_named, multiplies_bytes

    return multiplies_bytes(level_named("avx512"))
