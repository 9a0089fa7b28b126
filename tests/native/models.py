"""Models of a few nodes, run natively at every level of vector instructions and by reference."""

from __future__ import annotations

import dataclasses
import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.machine import LEVELS, cpu_features
from hagane.native import Target
from hagane.native.kernels.kernel import Kernel
from hagane.native.plan import partition
from hagane.native.run.engine import load_engine
from hagane.runtime import pipeline
from hagane.runtime.backends import NativeBackend, NativePart
from hagane.runtime.settings import Settings
from tests.native.emulated_tiles import may_emulate_tiles

RUNNABLE = [
    level.name
    for level in LEVELS
    if level.needs <= cpu_features() or (level.tiles and may_emulate_tiles())
]
# Only products of low precision differ where there are matrix tiles.
every_level = pytest.mark.parametrize("level", [name for name in RUNNABLE if name != "amx"])
every_low_precision_level = pytest.mark.parametrize("level", RUNNABLE)


def of_seven_bits(weights: np.ndarray) -> np.ndarray:
    """Return half of int8 weights, whose products ONNX Runtime sums exactly on every processor.

    Without VNNI it cuts sums of two products of uint8 and int8 to 16 bits.
    """
    return (weights // 2).astype(weights.dtype)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: Sequence[str] = ("y",),
    constants: dict[str, np.ndarray] | None = None,
    shapes: dict[str, Sequence[int | str]] | None = None,
    opset: int = 21,
) -> onnx.ModelProto:
    """Return a model whose inputs have the arrays' types, or the given symbolic shapes."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                (shapes or {}).get(name, array.shape),
            )
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    for value in graph.output:
        value.ClearField("type")
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", opset)])


def session(proto: onnx.ModelProto, **entries: Any) -> hagane.InferenceSession:
    """Return a session with settings by key: ``engine``, ``instructions``, ``threads``."""
    options = hagane.SessionOptions()
    options.precision = entries.pop("precision", "fp32")
    options.intra_op_num_threads = entries.pop("threads", 2)
    for key, value in entries.items():
        options.add_session_config_entry(f"hagane.{key}", value)
    return hagane.InferenceSession(proto, options)


def engine_bytes() -> int:
    """Return the bytes that the engine holds, once sessions of other tests build nothing beside."""
    for thread in threading.enumerate():
        if thread.name.startswith("hagane-") and thread is not threading.current_thread():
            thread.join()
    gc.collect()
    return load_engine().allocated()


def refused(found: hagane.InferenceSession) -> dict[str, str]:
    """Return the operators that run on reference kernels, and why; the rest has to be native."""
    assert found._programs.native, "the kernels could not be compiled"
    return {node.op_type: reason for node, reason in found._programs.refused.items()}


def compare(
    proto: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    level: str,
    *,
    rtol: float = 2e-5,
    atol: float = 2e-5,
    native: bool = True,
) -> list[Any]:
    """Run natively and by reference; the results must agree, and nothing may be refused."""
    made = session(proto, instructions=level)
    got = made.run(None, feed)
    want = session(proto, engine="reference").run(None, feed)
    for left, right in zip(got, want, strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=rtol, atol=atol)
    if native:
        assert refused(made) == {}
    return got


def compiled(monkeypatch: pytest.MonkeyPatch, make: Callable[[], object]) -> list[Kernel]:
    """Return copies of the kernels that are compiled while ``make`` runs, with their code."""
    found: list[Kernel] = []
    compile_kernels = partition.compile_kernels

    def watch(kernels: Sequence[Kernel], *arguments: Any, **named: Any) -> Any:
        found.extend(dataclasses.replace(kernel) for kernel in kernels)
        return compile_kernels(kernels, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(partition, "compile_kernels", watch)
        make()
    return found


def draw(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Return normal float32 numbers."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(np.float32)


def convolutions_and_sums(
    images: int,
    channels: int,
    maps: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    dilation: int,
    *,
    stride: int = 1,
    between: str = "Relu",
) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a chain of convolutions whose results are also added to others, and its input."""
    shapes = {
        "w0": (channels, channels, 1, 1), "w1": (maps, channels, *kernel),
        "w2": (maps, maps, 1, 1), "w3": (maps, channels, 1, 1), "w4": (9, maps, 3, 3),
    }  # fmt: skip
    weights = {
        name: draw(shape, i) / np.float32(np.sqrt(np.prod(shape[1:])))
        for i, (name, shape) in enumerate(shapes.items())
    }
    (kh, kw), d = kernel, dilation
    pads = [(kh - 1) * d // 2, (kw - 1) * d // 2, kh // 2 * d, kw // 2 * d]
    pads[2], pads[3] = (kh - 1) * d - pads[0], (kw - 1) * d - pads[1]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], strides=[stride] * 2),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=pads, dilations=[d, d]),
        helper.make_node(between, ["c"], ["e"]),
        helper.make_node("Conv", ["e", "w2"], ["f"]),
        helper.make_node("Conv", ["b", "w3"], ["g"]),
        helper.make_node("Add", ["f", "g"], ["h"]),
        helper.make_node("Relu", ["h"], ["i"]),
        helper.make_node("Conv", ["i", "w2"], ["j"]),
        helper.make_node("Add", ["i", "j"], ["k"]),
        helper.make_node("Conv", ["k", "w4"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    x = draw((images, channels, *size))
    return model(nodes, {"x": x}, constants=weights), x


def only_part(proto: onnx.ModelProto, target: Target) -> NativePart:
    """Return the one part of a model as it is, all of whose nodes have native kernels."""
    found = pipeline.read(proto, Settings())
    settings = Settings((NativeBackend(target),), optimize=False)
    built = pipeline.build(found.model, found.types, settings)
    assert not built.refused
    (part,) = built.program.parts()
    assert isinstance(part, NativePart)
    return part
