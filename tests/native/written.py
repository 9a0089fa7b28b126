"""Nodes with open sizes, run natively on several feeds and compared with the reference kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.errors import KernelError
from hagane.runtime import execute
from tests.native.agreement import same
from tests.native.models import model, refused, session

Feed = Mapping[str, np.ndarray]


@contextmanager
def natively() -> Iterator[None]:
    """Fail if any part falls back on reference kernels."""
    fall_back = execute._fall_back

    def never(step: Any, frame: Any, observe: Any) -> None:
        raise AssertionError("a part fell back on reference kernels")

    execute._fall_back = never
    try:
        yield
    finally:
        execute._fall_back = fall_back


def node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attributes: Any
) -> onnx.NodeProto:
    """Return a node named 'node'; the operator may be written with its domain."""
    domain, _, name = operator.rpartition(":")
    return helper.make_node(name, inputs, outputs, "node", domain=domain, **attributes)


def opened(feed: Feed, fixed: Sequence[str]) -> dict[str, Sequence[int | str]]:
    """Return shapes in which every size of every input has a name, but of those that are fixed.

    Args:
        feed: Arrays of the ranks.
        fixed: Names of inputs whose sizes are those of the arrays; ``x:1`` is one axis.
    """
    return {
        name: [
            size if name in fixed or f"{name}:{axis}" in fixed else f"{name}{axis}"
            for axis, size in enumerate(array.shape)
        ]
        for name, array in feed.items()
    }


def proto_of(
    nodes: Sequence[onnx.NodeProto],
    feed: Feed,
    fixed: Sequence[str] = (),
    opset: int = 22,
    outputs: Sequence[str] = (),
) -> onnx.ModelProto:
    """Return a model of nodes with open sizes; its outputs are the last node's if not named."""
    names = outputs or [name for name in nodes[-1].output if name]
    made = model(nodes, dict(feed), names, shapes=opened(feed, fixed), opset=opset)
    for domain, version in (("ai.onnx.ml", 3), ("com.microsoft", 1)):
        if any(each.domain == domain for each in nodes):
            newest = any(each.op_type in ("TreeEnsemble", "LabelEncoder") for each in nodes)
            made.opset_import.append(helper.make_opsetid(domain, 5 if newest else version))
    return made


def check(
    nodes: onnx.NodeProto | Sequence[onnx.NodeProto],
    feeds: Sequence[Feed],
    *,
    fixed: Sequence[str] = (),
    length: int = 1,
    steps: int = 0,
    opset: int = 22,
    outputs: Sequence[str] = (),
) -> None:
    """Fail unless one session computes all feeds natively, as the reference kernels do.

    Args:
        nodes: In order; the outputs of the last one are compared.
        feeds: Inputs of one type each, of any sizes.
        fixed: Inputs whose sizes the model has, or axes of them, ``x:1``.
        length: How many numbers the longest sum adds.
        steps: How far whole numbers may lie apart.
        opset: Of the model.
        outputs: The values to compare, where not those.
    """
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else nodes
    proto = proto_of(nodes, feeds[0], fixed, opset, outputs)
    names = [value.name for value in proto.graph.output]
    made, reference = session(proto), session(proto, engine="reference")
    assert refused(made) == {}
    assert not list(made._programs.general.parts("reference"))
    with natively():
        for _ in range(2):  # memory that was used before changes nothing
            for feed in feeds:
                got, want = made.run(None, feed), reference.run(None, feed)
                for name, left, right in zip(names, got, want, strict=True):
                    same(name, left, right, length=length, steps=steps)


def check_fault(
    nodes: onnx.NodeProto | Sequence[onnx.NodeProto],
    good: Feed,
    bad: Feed,
    *,
    fixed: Sequence[str] = (),
) -> None:
    """Fail unless a feed ends in the error of the reference kernel, and the next is computed."""
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else nodes
    proto = proto_of(nodes, good, fixed)
    made, reference = session(proto), session(proto, engine="reference")
    want = made.run(None, good)
    with pytest.raises(KernelError) as expected:
        reference.run(None, bad)
    with pytest.raises(KernelError) as caught:
        made.run(None, bad)
    assert str(caught.value) == str(expected.value)
    for left, right in zip(made.run(None, good), want, strict=True):
        np.testing.assert_array_equal(left, right)
