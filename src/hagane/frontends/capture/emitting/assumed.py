"""What a graph takes for granted, compared at run time: claims about sizes, errors not raised."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitting.emitter import GraphEmitter, false_or_failing
from hagane.frontends.capture.emitting.exact import only_item
from hagane.frontends.capture.emitting.scope import Scope
from hagane.frontends.capture.emitting.terms import as_value
from hagane.frontends.python.report.findings import CheckError
from hagane.graph.types import TensorType
from hagane.symbolic.path import PathCondition, Verdict
from hagane.symbolic.term import Term


def compare_sizes(emit: GraphEmitter) -> None:
    """Make outputs fail in a run whose sizes are not those that the graph was made for.

    These are sizes of 1 that ranks depend on, as in ``squeeze``, and sizes that are too small for
    what is asked of them, as by a window or by the padding of a reflection; likewise where the data
    decide that the program raises an error. An output becomes the
    only item of a list of it, at place 0, or at place 1 where a claim fails, which no list of one
    has. So the graph fails even where a size of 1 is that of a path not taken.

    Raises:
        CheckError: A size is known only inside a branch or loop, or the rank of an output is open.
    """
    ends = bool(emit.raises) and emit.scope is not emit.root
    raised = ends or bool(emit.unraised)
    if not emit.not_one and not emit.demands and not raised:
        return
    nodes = emit.root.nodes
    came = emit.is_here(emit.root) if ends else None
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
        claims = _strongest(emit)
        for claim in claims:
            found = nodes._node("Not", as_value(emit, claim))
            bad = found if bad is None else nodes._node("Or", bad, found)
        failed = [] if came is None else [nodes._node("Not", came)]
        for found in [*failed, *(emit.visible(value) for value in emit.unraised)]:
            bad = found if bad is None else nodes._node("Or", bad, found)
        if bad is None:
            return
        outputs = emit.root.graph.outputs
        chosen = list(outputs) if emit.not_one else _smallest(emit, outputs)
        for place, old in enumerate(list(outputs)):
            if old not in chosen:
                continue
            type_ = emit.types.types.get(old)
            if not isinstance(type_, TensorType) or type_.shape is None:
                text = f"output {old.name}: its rank depends on sizes that may be 1{remedy}"
                raise CheckError("capture", text)
            told = ", ".join(emit.demands[claim] for claim in claims)
            if not told and emit.not_one:  # sizes that the data decide
                names = ", ".join(str(dim) for dim in dict.fromkeys(emit.not_one))
                told = f"no size of 1 in {names}, whose axis squeeze would drop{remedy}"
            told = f"sizes: expected {told}" if told else ""
            more_told = _raises(emit) if raised else ""
            new = only_item(nodes, old, bad, "; or ".join(filter(None, (told, more_told))))
            name, old.name = old.name, None
            new.name = name
            emit.set_type(new, type_)
            outputs[place] = new


def false_or_raised(
    emit: GraphEmitter, came: ir.Value | None, loops: Sequence[ir.Value], around: Scope
) -> ir.Value | None:
    """Return false, and fail in runs of a loop's body in which the program raises an error.

    Args:
        emit: Makes nodes.
        came: Whether a run came to the end of the body; None where all do.
        loops: The same of loops in the body.
        around: The body.

    Returns:
        None where none raises one.
    """
    nodes, made = around.nodes, [emit.visible(value, around) for value in loops]
    if came is not None:
        made.append(false_or_failing(nodes, nodes._node("Not", came), _raises(emit)))
    return reduce(partial(nodes._node, "Or"), made) if made else None


def _raises(emit: GraphEmitter) -> str:
    return f"the program raises an error: {' or '.join(emit.raises)}"


def _strongest(emit: GraphEmitter) -> list[Term]:
    """Return the claims without those that others imply."""
    known, kept = emit.knowledge, list[Term]()
    before, known.path = known.path, PathCondition()
    lowest = dict(known.lowest)
    known.lowest.update((name, 0) for name in emit.bare if lowest.get(name) == 1)
    known.forget()
    for claim in reversed(list(emit.demands)):  # later ones are stronger, mostly
        if known.ask(claim).verdict is not Verdict.PROVED:
            kept.append(claim)
            known.path = known.path.taking(claim)
    known.path, known.lowest = before, lowest
    known.forget()
    return kept


def _smallest(emit: GraphEmitter, outputs: Sequence[ir.Value]) -> list[ir.Value]:
    """Return an output of the fewest axes, of those whose rank is known."""
    ranks = {}
    for value in outputs:
        type_ = emit.types.types.get(value)
        if isinstance(type_, TensorType) and type_.shape is not None:
            ranks[value] = len(type_.shape)
    return sorted(ranks, key=lambda value: ranks[value])[:1]


__all__ = ["compare_sizes", "false_or_raised"]
