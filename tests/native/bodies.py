"""Graphs with loops, scans and branches, and what ONNX Runtime makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hagane
from tests.native.agreement import same
from tests.native.models import refused, session

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, kind: int = FLOAT, shape: Sequence[int | str] = ()) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.GraphProto:
    kept = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs), kept)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    read = ["" if name == "-" else name for name in inputs.split()]
    name = f"{kind} for {outputs}"
    return helper.make_node(kind, read, outputs.split(), name, **attributes)


def by_onnxruntime(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # ThreadSanitizer cannot see into its threads
    run = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(run.run(None, feed))


def check(
    proto: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    want: Sequence[np.ndarray] | None = None,
    *,
    length: int = 64,
    threads: int = 2,
) -> hagane.InferenceSession:
    """Compare with ONNX Runtime, or with what is wanted, twice; all has to be native."""
    made = session(proto, threads=threads)
    want = by_onnxruntime(proto, feed) if want is None else want
    for _ in range(2):
        names = [item.name for item in proto.graph.output]
        for name, left, right in zip(names, made.run(None, feed), want, strict=True):
            same(name, left, right, length=length)
    assert refused(made) == {}
    assert loops(made)
    return made


def loops(made: hagane.InferenceSession) -> list[Any]:
    """Return the loops and branches of the compiled parts of the main graph."""
    programs = [made._programs.general]
    steps = [step for program in programs if program is not None for step in program.steps]
    parts = [step.part for step in steps if hasattr(step, "part")]
    return [c for part in parts for c in part.segment.controls if c is not None]


# ---- any body ----


def looped(
    nodes: Sequence[onnx.NodeProto],
    states: dict[str, str],
    scanned: Sequence[str] = (),
    constants: dict[str, np.ndarray] | None = None,
    shape: Sequence[int | str] = (3,),
    goes: str = "go",
) -> onnx.GraphProto:
    """Return the body of a loop over states of one shape."""
    return graph(
        nodes,
        [info("i", INT64), info("go", BOOL), *(info(name, shape=shape) for name in states)],
        [info(goes, BOOL), *(info(name, shape=shape) for name in (*states.values(), *scanned))],
        constants,
    )
