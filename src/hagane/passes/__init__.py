"""Graph to graph: each pass keeps what the outputs are and makes computing them cheaper.

A pass is a function from a graph and what is known of its values to the names of the nodes that it
changed; run again, it changes nothing. They are applied in the order of ``PASSES``, and again until
none changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass

import onnx_ir as ir

from hagane.graph.walk import all_graphs
from hagane.ops.inference import GraphTypes
from hagane.passes.control.inline_branches import inline_branches
from hagane.passes.control.stack_appended import stack_appended
from hagane.passes.control.unroll_sequences import unroll_sequences
from hagane.passes.expanding.expand_composed import expand_composed
from hagane.passes.expanding.spread_variable import spread_variable
from hagane.passes.folding.fold_affine import fold_affine
from hagane.passes.folding.fold_constants import fold_constants
from hagane.passes.folding.fold_pads import fold_pads
from hagane.passes.folding.fold_shapes import fold_shapes
from hagane.passes.fusing.fuse_activations import fuse_activations
from hagane.passes.fusing.fuse_attention import fuse_attention
from hagane.passes.fusing.fuse_gelu import fuse_gelu
from hagane.passes.fusing.fuse_layer_norm import fuse_layer_norm
from hagane.passes.fusing.fuse_rms_norm import fuse_rms_norm
from hagane.passes.fusing.fuse_rotary import fuse_rotary
from hagane.passes.fusing.restore_softmax import restore_softmax
from hagane.passes.quantized.fuse_quantized import fuse_quantized
from hagane.passes.quantized.gather_quantized import gather_quantized
from hagane.passes.quantized.spread_quantized import spread_quantized
from hagane.passes.removing.cancel_transposes import cancel_transposes
from hagane.passes.removing.join_reshapes import join_reshapes
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead
from hagane.passes.removing.remove_identity import remove_identity


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewriting of graphs.

    Attributes:
        run: Changes a graph in place and returns the names of the nodes that it changed.
        effect: What it does, in words.
        makes: The operator that it makes of several, which an engine may lack.
        needs: Operators of ONNX without which there is nothing to do; of a set, one will do.
    """

    run: Callable[[ir.Graph, GraphTypes], list[str]]
    effect: str
    makes: str | None = None
    needs: tuple[str | frozenset[str], ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    def has_work(self, present: Set[str]) -> bool:
        """Whether a graph of some operators may have anything for the pass to do."""
        return all(
            need in present if isinstance(need, str) else bool(need & present)
            for need in self.needs
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What a pass did to a graph: the names of the nodes that it changed, in order."""

    name: str
    effect: str
    nodes: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many places were changed."""
        return len(self.nodes)


PASSES: tuple[Pass, ...] = (
    Pass(expand_composed, "operators of other domains become those of ONNX that they are made of"),
    Pass(
        inline_branches,
        "If nodes whose condition is known become the branch that they take",
        needs=("If",),
    ),
    Pass(fold_constants, "what follows from constants and known sizes is computed ahead"),
    Pass(fold_shapes, "shapes that the model computes become constants, named sizes left open"),
    Pass(
        unroll_sequences,
        "pieces taken out of a sequence become those of Split",
        needs=("SplitToSequence",),
    ),
    Pass(
        stack_appended,
        "what turns of a loop only add to an end is stacked and joined once",
        needs=("Loop",),
    ),
    Pass(remove_identity, "nodes that return what they are given are passed over"),
    Pass(merge_common, "equal nodes on equal inputs become one"),
    Pass(
        fuse_quantized,
        "operators between dequantisation and quantisation become 8-bit ones",
        needs=("DequantizeLinear",),
    ),
    Pass(
        gather_quantized,
        "tables of bytes are looked up before they are dequantised",
        needs=("Gather", "DequantizeLinear"),
    ),
    Pass(
        spread_quantized,
        "grouped 8-bit convolutions become convolutions of floats",
        needs=("QLinearConv",),
    ),
    Pass(
        cancel_transposes, "transpositions that undo each other meet and go", needs=("Transpose",)
    ),
    Pass(
        restore_softmax,
        "what older models flatten for Softmax of the last axis stays as it is",
        needs=("Reshape",),
    ),
    Pass(
        fold_pads,
        "zero padding becomes the padding of the convolution that reads it",
        needs=("Conv", "Pad"),
    ),
    Pass(
        fold_affine,
        "batch normalisation, factors and summands become weights and biases of linear nodes",
        needs=(frozenset({"BatchNormalization", "Sub", "Div", "Mul", "Add"}),),
    ),
    Pass(
        fuse_layer_norm,
        "means, deviations and quotients become LayerNormalization",
        "LayerNormalization",
        ("Add", "Mul", "Div", "ReduceMean"),
    ),
    Pass(
        fuse_rms_norm,
        "quotients by root mean squares become RMSNormalization",
        "RMSNormalization",
        ("ReduceMean",),
    ),
    Pass(
        fuse_gelu,
        "error functions, or tanh in their place, and products become Gelu",
        "Gelu",
        (frozenset({"Erf", "Tanh"}),),
    ),
    Pass(
        fuse_activations,
        "products with gates become Swish, HardSwish or Mish",
        needs=(frozenset({"Sigmoid", "HardSigmoid", "Clip", "Tanh", "Where"}),),
    ),
    Pass(
        fuse_attention,
        "softmax between two matrix products becomes Attention",
        "Attention",
        ("Softmax", "MatMul"),
    ),
    Pass(
        fuse_rotary,
        "halves that are swapped and turned by tables become RotaryEmbedding",
        "RotaryEmbedding",
        ("Add", "Mul", frozenset({"Split", "Slice"})),
    ),
    Pass(spread_variable, "Gemm and BatchNormalization of parameters that vary are taken apart"),
    # Patterns of exporters have reshapes in them; what is joined goes through them no more.
    Pass(join_reshapes, "reshapes of reshapes become one or none"),
    Pass(remove_dead, "nodes that no output needs are removed"),
)
# Operators without a native kernel: taken apart they run compiled, whole on reference kernels.
LACKING: frozenset[str] = frozenset()
# Changes make room for others, but not often more than twice in a row.
_MOST_ROUNDS = 4


def optimize(
    graph: ir.Graph, types: GraphTypes, *, lacking: Collection[str] = LACKING
) -> list[Change]:
    """Apply all passes to a legalised, type-checked graph and its bodies; return what each did.

    Bodies of Loop, Scan and If are graphs like the one around them, whose constants they see.

    Args:
        graph: Changed in place; its values' types must be inferred anew afterwards.
        types: What inference found for it.
        lacking: Operators that no pass may make, since the engine has them in parts only.
    """
    applied = [one for one in PASSES if one.makes not in lacking]
    changed: dict[str, list[str]] = {one.name: [] for one in applied}
    graphs = list(all_graphs(graph))
    present = _operators(graphs)
    for _ in range(_MOST_ROUNDS):
        before = sum(map(len, changed.values()))
        for one in applied:
            if not one.has_work(present):
                continue
            nodes = [name for each in graphs for name in one.run(each, types)]
            changed[one.name] += nodes
            if nodes and len(graphs) > 1:  # bodies may be gone, or in another place
                graphs = list(all_graphs(graph))
            present = _operators(graphs) if nodes else present
        if sum(map(len, changed.values())) == before:
            break
    return [Change(one.name, one.effect, tuple(changed[one.name])) for one in applied]


def _operators(graphs: Sequence[ir.Graph]) -> Set[str]:
    """Return the operators of ONNX in some graphs, by name."""
    return {node.op_type for each in graphs for node in each if node.domain in ("", "ai.onnx")}


__all__ = ["LACKING", "PASSES", "Change", "Pass", "optimize"]
