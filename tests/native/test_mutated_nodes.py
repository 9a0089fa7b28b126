"""Mutated cases of single operators: one session at several sizes, by all engines.

Engines give the same results, or refuse alike; nothing but hagane's own errors is raised. What ONNX
Runtime takes, and computes, hagane does too. ``make fuzz`` draws other mutations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from hagane.errors import HaganeError
from tests.native.models import session
from tests.native.mutated_nodes import Mutated, mutated
from tests.native.node_cases import domain_cases, onnx_cases

# NumPy says these of numbers that mutations make: no numbers, and others beyond their type.
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Mean of empty slice"),
]
# The largest error over the largest number; other types' are exact, or one step of a rounding off.
_ERROR = {"float64": 1e-6, "float32": 3e-4, "float16": 2e-2, "bfloat16": 0.1}
_ROUNDED = re.compile(r"quant|qlinear|QLinear|Quant|QGemm|NBits|integer|Integer")
_MANY = round(1000 * float(os.environ.get("HAGANE_EXAMPLES") or 1))


def check(made: Mutated) -> None:
    """Fail unless engines agree on every feed, or refuse it alike."""
    about = ", ".join(made.changes)
    threads = 1 + len(about) % 2
    native, wrong = _attempt(lambda: session(made.model, threads=threads))
    reference, wrong_too = _attempt(lambda: session(made.model, engine="reference"))
    assert str(wrong) == str(wrong_too), f"{about}: one engine: {wrong or wrong_too}"
    # (It reads inputs that are left out, and ends the process.)
    peer = None if "no input" in about else _onnxruntime(made.model)
    if wrong is not None:
        # (It infers less, and says much of it when a run comes to the node.)
        feed = made.feeds[0]
        theirs = None if peer is None else _theirs(peer, made.outputs, feed)
        assert theirs is None or _differs(about, "refused"), f"{about}: {wrong}"
        return
    for feed in made.feeds:
        sizes = {name: array.shape for name, array in feed.items()}
        where = f"{about} {sizes}"
        got, fault = _attempt(lambda feed=feed: native.run(made.outputs, feed))
        want, fault_too = _attempt(lambda feed=feed: reference.run(made.outputs, feed))
        empty = not all(array.size for array in feed.values())
        if fault is None and fault_too is not None and (empty or _differs(about, "native")):
            continue  # NumPy finds no largest of nothing, and no size of -1 where another is 0
        taken = "native" if fault is None else "reference"
        assert (fault is None) == (fault_too is None), (
            f"{where}: only {taken}: {fault or fault_too}"
        )
        steps = 1 if _ROUNDED.search(about) else 0
        finite = all(map(_is_finite, feed.values()))
        if empty and _differs(about, "empty"):
            continue
        if fault is None and (finite or not _differs(about, "native")):
            _same(f"{where} by reference", got, want, steps)
        # Some of ONNX Runtime's kernels end the process where a size is zero; NaN and infinite
        # numbers come from its sums in another order.
        if peer is None or empty or not finite:
            continue
        theirs = _theirs(peer, made.outputs, feed)
        if theirs is None:
            continue
        if fault is not None:
            assert _differs(about, "refused"), f"{where}: ONNX Runtime takes: {fault}"
        elif not _differs(about, "computed"):
            _same(f"{where} by ONNX Runtime", got, theirs, steps)


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _attempt(make: Callable[[], Any]) -> tuple[Any, HaganeError | None]:
    """Return a result, or hagane's error; others are mistakes."""
    try:
        return make(), None
    except HaganeError as error:
        return None, error


# Where engines do otherwise: what hagane does and ONNX Runtime does not, or the reference kernels
# do not; names of cases; and why.
_DIFFERENCES = (
    ("computed", "(max|average)pool_.*strides", "it rounds negative sizes towards zero"),
    ("refused", "(max|average)pool_.*strides", "it rounds negative sizes towards zero"),
    ("computed", "scales_cubic_align_corners", "it takes the scale for that of the corners"),
    ("computed", "maxunpool", "a place that is named twice gets the number of another turn"),
    ("computed", "Imputer", "it takes the first of another number of values for all"),
    ("refused", "SkipLayer", "it reads as many rows of a skip as there are of its input"),
    ("refused", "Imputer", "it takes the first of another number of values for all"),
    ("refused", "LinearClassifier|LinearRegressor|SVM", "it reads beyond its coefficients"),
    ("refused", "num_heads=", "it shares out heads that cannot be shared"),
    ("refused", "sce_|nllloss", "it reads the scores of as many rows as there are labels"),
    ("refused", "compress", "it passes over choices beyond the end"),
    ("refused", "GatherBlock", "it reads beyond the table"),
    ("computed", "Attention.*without y[12]", "it needs the caches after the call"),
    ("computed", "local_window_size=0", "it takes no key for a window of 0, not all"),
    (
        "native",
        "Attention",
        "scores that all are -inf count as masked ones, as ONNX's Attention has it",
    ),
    ("empty", "attention", "heads of no numbers have no scale"),
    ("native", "sce_.*without z", "what nobody reads is not computed"),
    ("native", "EmbedLayer.*without y0", "what nobody reads is not computed"),
)


def _differs(about: str, what: str) -> bool:
    return any(kind == what and re.search(names, about) for kind, names, _ in _DIFFERENCES)


def _onnxruntime(model: onnx.ModelProto) -> Any:
    """Return a session, None where ONNX Runtime does not take the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        typed = onnx.shape_inference.infer_shapes(model)
        return onnxruntime.InferenceSession(
            typed.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # of many kinds, without a common base
        return None


def _theirs(peer: Any, outputs: list[str], feed: dict[str, np.ndarray]) -> list[Any] | None:
    try:
        found: list[Any] = peer.run(outputs, feed)
    except Exception:
        return None
    return found


def _same(name: str, left: Any, right: Any, steps: int) -> None:
    """Fail unless two results are one; lists are compared by elements."""
    if isinstance(left, list) and isinstance(right, list):
        assert len(left) == len(right), name
        for a, b in zip(left, right, strict=True):
            _same(name, a, b, steps)
        return
    assert type(left) is type(right), name
    if not isinstance(left, np.ndarray):
        assert left == right, name
        return
    assert (left.shape, left.dtype) == (right.shape, right.dtype), name
    if left.dtype.name not in _ERROR and left.dtype.kind not in "iu":
        assert left.tobytes() == right.tobytes() or left.tolist() == right.tolist(), name
        return
    if left.dtype.kind in "iu":
        apart = np.abs(left.astype(object) - right.astype(object)).max(initial=0)
        assert apart <= steps, f"{name}: {left} is not {right}"
        return
    wide, other = left.astype(np.float64), right.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(other), name)
    finite = np.isfinite(other)
    np.testing.assert_array_equal(wide[~finite], other[~finite], name)
    largest = max(float(np.abs(other[finite]).max(initial=0)), 1e-3)
    far = np.abs(wide - other)[finite].max(initial=0)
    assert far <= _ERROR[left.dtype.name] * largest, f"{name}: {far} apart, of {largest}"


def drawn(seed: int) -> Mutated:
    """Return a mutation of any case, of the domains other than ONNX's for one seed of four."""
    cases = domain_cases() if seed % 4 == 0 else onnx_cases()
    return mutated(cases[seed * 7919 % len(cases)], seed)


@pytest.mark.parametrize("seed", range(8))
def test_mutated_nodes_agree_or_are_refused_alike(seed: int) -> None:
    check(drawn(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 100 + _MANY))
def test_many_mutated_nodes_agree_or_are_refused_alike(seed: int) -> None:
    check(drawn(seed))
