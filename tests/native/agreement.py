"""Comparing native results with those of the reference kernels, output by output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from hagane.native.plan import partition
from tests.native.models import model, refused, session

# Rounding errors of one operation, by element type; products and sums multiply them.
_STEP = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}


def agree(
    nodes: Sequence[onnx.NodeProto],
    feed: dict[str, np.ndarray],
    level: str,
    *,
    constants: dict[str, np.ndarray] | None = None,
    shapes: dict[str, Sequence[int | str]] | None = None,
    outputs: Sequence[str] | None = None,
    length: int = 1,
    steps: int = 0,
    native: bool = False,
    signs: bool = False,
    threads: int = 2,
    opset: int = 21,
) -> list[Any]:
    """Fail unless every output of the nodes is what the reference kernels make of it.

    Args:
        nodes: In order.
        feed: Inputs.
        level: Vector instructions.
        constants: Initializers.
        shapes: Symbolic shapes of inputs.
        outputs: What to compare; every named output of the nodes if None.
        length: How many numbers the longest sum adds.
        steps: How far whole numbers may lie apart.
        native: Whether every node must have a kernel.
        signs: Whether zeros must have the same sign.
        threads: Of the native session.
        opset: Of the model.
    """
    names = outputs or [name for node in nodes for name in node.output if name]
    proto = model(nodes, feed, names, constants, shapes, opset)
    made = session(proto, instructions=level, threads=threads)
    got, want = made.run(None, feed), session(proto, engine="reference").run(None, feed)
    for name, left, right in zip(names, got, want, strict=True):
        same(name, left, right, length=length, steps=steps, signs=signs)
    if native:
        assert refused(made) == {}
    return got


def agree_over(
    nodes: Sequence[onnx.NodeProto],
    feeds: Sequence[dict[str, np.ndarray]],
    level: str,
    shapes: Mapping[str, Sequence[int | str]],
    *,
    constants: dict[str, np.ndarray] | None = None,
    outputs: Sequence[str] | None = None,
    length: int = 1,
    steps: int = 0,
    threads: int = 2,
    opset: int = 21,
) -> None:
    """Fail unless one session of open sizes computes all feeds as the reference kernels do.

    Every node must have a kernel, and nothing may be compiled once the session is made. Arguments
    are those of ``agree``.
    """
    names = outputs or [name for node in nodes for name in node.output if name]
    proto = model(nodes, feeds[0], names, constants, dict(shapes), opset)
    made = session(proto, instructions=level, threads=threads)
    assert refused(made) == {}
    reference = session(proto, engine="reference")
    with no_compilation():
        for feed in feeds:
            got, want = made.run(None, feed), reference.run(None, feed)
            sizes = ", ".join(f"{name} {list(array.shape)}" for name, array in feed.items())
            for name, left, right in zip(names, got, want, strict=True):
                same(f"{name} of {sizes}", left, right, length=length, steps=steps)


@contextlib.contextmanager
def no_compilation() -> Iterator[None]:
    """Fail where kernels are compiled meanwhile, be they in the cache or not."""

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("kernels were compiled after the session was made")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "compile_kernels", refuse)
        yield


def same(
    name: str,
    left: np.ndarray,
    right: np.ndarray,
    *,
    length: int = 1,
    steps: int = 0,
    signs: bool = False,
    summed: float = 0.0,
) -> None:
    """Fail unless two arrays agree as far as sums of ``length`` numbers let them.

    Errors of sums are measured against the largest number of the array, or of what was ``summed``
    on the way to it: cancellation leaves small results with the errors of the large numbers that
    they came from.
    """
    assert left.dtype == right.dtype, name
    assert left.shape == right.shape, name
    if right.dtype.name.startswith(("float8", "float4")):  # whose NaN NumPy does not know
        left, right = left.astype(np.float64), right.astype(np.float64)
        np.testing.assert_array_equal(left, right, name)
        return
    if right.dtype.name not in _STEP:
        if right.dtype.kind in "iu":
            apart = np.abs(left.astype(object) - right.astype(object)).max(initial=0)
            assert apart <= steps, f"{name}: {left} is not {right}"
        else:
            np.testing.assert_array_equal(left, right, name)
        return
    if signs:
        zeros = right == 0
        np.testing.assert_array_equal(np.signbit(left[zeros]), np.signbit(right[zeros]), name)
    relative = _STEP[right.dtype.name] * max(1.0, np.sqrt(length))
    wide = np.float64
    largest = max(summed, float(np.abs(right[np.isfinite(right)]).max(initial=0)))
    atol = 0.0 if length == 1 else float(largest * relative)
    np.testing.assert_allclose(
        left.astype(wide), right.astype(wide), rtol=relative, atol=atol, err_msg=name
    )


def by_name(names: Sequence[str], values: Sequence[Any]) -> Mapping[str, Any]:
    """Return values by the names of their outputs."""
    return dict(zip(names, values, strict=True))
