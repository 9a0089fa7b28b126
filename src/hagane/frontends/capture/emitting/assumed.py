"""Sizes that a graph takes to be other than 1, compared at run time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.python.report.findings import CheckError
from hagane.graph.types import TensorType


def compare_sizes(emit: GraphEmitter) -> None:
    """Make all outputs fail in a run where a size is 1 that ranks depend on, as in ``squeeze``.

    An output becomes the only item of a list of it, at place 0, or at place 1 where a size is 1,
    which no list of one has. So the graph fails even where the size is that of a path not taken.

    Raises:
        CheckError: A size is known only inside a branch or loop, or the rank of an output is open.
    """
    if not emit.not_one:
        return
    nodes = emit.root.nodes
    remedy = "; give the size, or write x.reshape(...) or x[0] in place of squeeze"
    with emit.at(emit.root):
        bad = None
        one = nodes.initializer(np.array(1, np.int64), "constant")
        for dim in dict.fromkeys(emit.not_one):
            try:
                found = nodes._node("Equal", nodes.size(dim), one)
            except TypeInferenceError:
                raise CheckError(
                    "capture", f"squeeze of an axis whose size {dim} may be 1 and is known only in "
                    f"a branch or loop{remedy}"
                ) from None  # fmt: skip
            bad = found if bad is None else nodes._node("Or", bad, found)
        assert bad is not None
        more = nodes._node("Cast", bad, to=int(ir.DataType.INT64))
        outputs = emit.root.graph.outputs
        for place, old in enumerate(list(outputs)):
            type_ = emit.types.types.get(old)
            if not isinstance(type_, TensorType) or type_.shape is None:
                text = f"output {old.name}: its rank depends on sizes that may be 1{remedy}"
                raise CheckError("capture", text)
            wide = nodes._node("Unsqueeze", old, nodes.initializer(np.zeros(1, np.int64), "axes"))
            new = nodes._node("Gather", wide, more, axis=0)
            name, old.name = old.name, None
            new.name = name
            emit.set_type(new, type_)
            outputs[place] = new


__all__ = ["compare_sizes"]
