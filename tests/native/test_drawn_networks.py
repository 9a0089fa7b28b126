"""Networks drawn from seeds, with open sizes: one session at eight shapes, by all engines.

Results are compared with those of the reference kernels, and with ONNX Runtime's where it has all
operators for the types. ``make fuzz`` draws other seeds.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException

from hagane.errors import KernelError
from tests.native.drawn_networks import network
from tests.native.models import refused, session

# NumPy says so of means over nothing, which are no numbers by any engine.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
    pytest.mark.filterwarnings("ignore:Degrees of freedom"),
    pytest.mark.filterwarnings("ignore:invalid value encountered"),
]
# The largest error over the largest number; quantised layers round neighbours apart.
_ERROR = {"float32": 1e-3, "float64": 1e-9, "float16": 3e-2, "bytes": 0.4}
_MANY = round(200 * float(os.environ.get("HAGANE_EXAMPLES") or 1))


def check(seed: int) -> None:
    """Fail unless engines agree on every shape, or refuse it alike."""
    proto, precision, feeds = network(seed)
    made, reference = session(proto, threads=1 + seed % 2), session(proto, engine="reference")
    assert refused(made) == {}
    other = _onnxruntime(proto)
    for feed in feeds:
        with np.errstate(all="ignore"):
            want = _results(reference, feed)
        got = _results(made, feed)
        sizes = {name: array.shape for name, array in feed.items()}
        assert (got is None) == (want is None), f"one engine refuses {sizes}"
        if got is None or want is None:
            continue
        for left, right in zip(got, want, strict=True):
            near(f"reference {sizes}", precision, left, right)
        # Some of its kernels end the process where a size is zero.
        peer = None
        if other is not None and all(array.size for array in feed.values()):
            peer = _results(other, feed)
        for left, right in zip(got, peer or (), strict=peer is not None):
            near(f"ONNX Runtime {sizes}", precision, left, right)


def near(name: str, precision: str, left: np.ndarray, right: np.ndarray) -> None:
    """Fail unless numbers differ by no more than roundings let them."""
    assert (left.shape, left.dtype) == (right.shape, right.dtype), name
    wide, other = left.astype(np.float64), right.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(other), name)
    finite = np.isfinite(wide) & np.isfinite(other)
    apart = np.abs(wide - other)[finite]
    largest = max(float(np.abs(other[finite]).max(initial=0)), 1e-3)
    assert apart.max(initial=0) <= _ERROR[precision] * largest, name
    if precision == "bytes" and apart.size:
        assert apart.mean() <= 0.02 * largest, name


def _results(engine: Any, feed: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """Return the results of a run, None of one that is refused.

    ONNX Runtime finds some types and numbers of axes that a kernel of its own lacks when it runs.
    """
    try:
        found: list[np.ndarray] = engine.run(None, feed)
    except (KernelError, Fail, RuntimeException):
        return None
    return found


def _onnxruntime(proto: onnx.ModelProto) -> Any:
    """Return a session, None where ONNX Runtime has no kernel for an operator and type."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):
            return None
        raise


@pytest.mark.parametrize("seed", [1014, 1074])
def test_drawn_networks_agree_at_every_shape(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(_MANY))
def test_many_drawn_networks_agree_at_every_shape(seed: int) -> None:
    check(seed)
