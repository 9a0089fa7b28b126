"""Graph to graph: each pass keeps the outputs and makes computing them cheaper.

A pass is a function from a graph and the facts of its values to the names of the nodes that it
changed; run again, it changes nothing. They are applied in the order of ``PASSES``, and again until
none changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from importlib import import_module

import onnx_ir as ir

from hagane.graph.walk import all_graphs
from hagane.ops.inference import GraphTypes
from hagane.ops.schema import onnx_schema

# Stands for every operator that ONNX does not define.
FOREIGN = "operators of other domains"
# Stands for Conv that may have windows of three axes: few graphs have any.
VOLUMES = "convolutions of volumes"
# Operators of ONNX that become others: no kernel computes them as one, or products are faster.
WRITTEN_IN_OTHERS = frozenset(
    {
        "BlackmanWindow",
        "Einsum",
        "HammingWindow",
        "HannWindow",
        "LRN",
        "NegativeLogLikelihoodLoss",
        "STFT",
        "SoftmaxCrossEntropyLoss",
    }
)


@dataclass(frozen=True, slots=True)
class Pass:
    """One rewriting of graphs.

    Attributes:
        room: The package beside this module that holds its module.
        name: The name of the module, and of the function in it.
        effect: Its effect, in words.
        makes: The operator that it makes of several, which an engine may lack.
        needs: Operators of ONNX without which there is nothing to do; of a set, one will do.
            ``FOREIGN`` stands for those of other domains, ``VOLUMES`` for some of Conv.
        shows: Whether it shows sizes that were unknown: passes find more to do with these.
    """

    room: str
    name: str
    effect: str
    makes: str | None = None
    needs: tuple[str | frozenset[str], ...] = ()
    shows: bool = False

    @property
    def run(self) -> Callable[[ir.Graph, GraphTypes], list[str]]:
        """The function: it changes a graph in place and returns the nodes that it changed.

        Its module is imported when a graph first has work for it.
        """
        module = import_module(f"{__name__}.{self.room}.{self.name}")
        found: Callable[[ir.Graph, GraphTypes], list[str]] = getattr(module, self.name)
        return found

    def has_work(self, present: Set[str]) -> bool:
        """Whether a graph of some operators may have anything for the pass to do."""
        return all(
            need in present if isinstance(need, str) else bool(need & present)
            for need in self.needs
        )


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a pass on a graph: the names of the nodes that it changed, in order.

    ``shows`` is that of the pass.
    """

    name: str
    effect: str
    nodes: tuple[str, ...]
    shows: bool = False

    @property
    def count(self) -> int:
        """How many places were changed."""
        return len(self.nodes)


PASSES: tuple[Pass, ...] = (
    Pass(
        "expanding",
        "expand_composed",
        "operators of other domains become those of ONNX that they are made of",
        needs=(frozenset({FOREIGN, *WRITTEN_IN_OTHERS}),),
    ),
    Pass(
        "control",
        "inline_branches",
        "If nodes whose condition is known become the branch that they take",
        needs=("If",),
    ),
    Pass(
        "control",
        "follow_branches",
        "nodes behind branches whose results have different ranks follow one branch, or each",
        needs=("If",),
        shows=True,
    ),
    Pass(
        "control",
        "flatten_branches",
        "outputs of branches that have different ranks become rows and shapes",
        needs=("If",),
    ),
    Pass(
        "folding", "fold_constants", "what follows from constants and known sizes is computed ahead"
    ),
    Pass(
        "folding",
        "fold_shapes",
        "shapes that the model computes become constants, named sizes left open",
        needs=(frozenset({"Reshape", "Expand"}),),
    ),
    Pass(
        "folding",
        "fold_kept_axes",
        "resizing and padding by computed numbers names no axis that stays",
        needs=(frozenset({"Resize", "Pad"}), "Concat"),
        shows=True,
    ),
    Pass(
        "control",
        "unroll_sequences",
        "pieces taken out of a sequence become those of Split",
        needs=("SplitToSequence",),
    ),
    Pass(
        "control",
        "widen_starts",
        "states that broadcast in a loop begin with the shape that iterations give them",
        needs=("Loop",),
    ),
    Pass(
        "control",
        "gather_singles",
        "slices of the one element that a condition needs become Gather",
        needs=("Slice", "If"),
        shows=True,
    ),
    Pass(
        "control",
        "unroll_loops",
        "short loops whose values change their ranks become their iterations",
        needs=("Loop",),
        shows=True,
    ),
    Pass(
        "control",
        "stack_appended",
        "rows that iterations of a loop only add to an end are stacked and joined once",
        needs=("Loop",),
        shows=True,
    ),
    Pass(
        "control",
        "stack_sequences",
        "sequences whose items have one type become tensors with an axis more",
        needs=(frozenset({"SequenceEmpty", "SequenceConstruct", "SplitToSequence"}),),
        shows=True,
    ),
    Pass(
        "control",
        "slice_sequences",
        "pieces of a sequence become slices of the tensor that was cut",
        needs=("SplitToSequence",),
        shows=True,
    ),
    Pass(
        "control",
        "join_sequences",
        "sequences that are only added to and joined become what is joined so far",
        needs=(
            frozenset({"SequenceEmpty", "SequenceConstruct", "SplitToSequence"}),
            "ConcatFromSequence",
        ),
        shows=True,
    ),
    Pass(
        "control",
        "pack_sequences",
        "sequences whose items differ in one length become their items and where these end",
        needs=(frozenset({"SequenceEmpty", "SequenceConstruct"}),),
        shows=True,
    ),
    Pass(
        "control",
        "drop_states",
        "values that loops carry or leave for nobody go",
        needs=("Loop",),
    ),
    Pass("removing", "remove_identity", "nodes that return what they are given are passed over"),
    Pass("removing", "merge_common", "equal nodes on equal inputs become one"),
    Pass(
        "quantized",
        "pool_quantized",
        "bytes are pooled before they are dequantised",
        needs=("MaxPool", "DequantizeLinear"),
    ),
    Pass(
        "quantized",
        "fuse_quantized",
        "operators between dequantisation and quantisation become 8-bit ones",
        needs=("DequantizeLinear",),
    ),
    Pass(
        "quantized",
        "gather_quantized",
        "tables of bytes are looked up before they are dequantised",
        needs=("Gather", "DequantizeLinear"),
    ),
    Pass(
        "quantized",
        "spread_quantized",
        "grouped 8-bit convolutions become convolutions of floats",
        needs=(frozenset({"ConvInteger", "QLinearConv"}),),
    ),
    Pass(
        "removing",
        "cancel_transposes",
        "transpositions that undo each other meet and go",
        needs=("Transpose",),
    ),
    Pass(
        "removing",
        "turn_regions",
        "what lies between transpositions to channels first and last has them first",
        needs=("Transpose",),
    ),
    Pass(
        "fusing",
        "restore_softmax",
        "what older models flatten for Softmax of the last axis stays as it is",
        needs=("Reshape",),
    ),
    Pass(
        "folding",
        "fold_pads",
        "zero padding becomes the padding of the convolution that reads it",
        needs=("Conv", "Pad"),
    ),
    Pass(
        "folding",
        "fold_affine",
        "batch normalisation, factors and summands become weights and biases of linear nodes",
        needs=(frozenset({"BatchNormalization", "Sub", "Div", "Mul", "Add"}),),
    ),
    Pass(
        "folding",
        "fold_looked_up",
        "tables of which rows are looked up and multiplied are multiplied ahead",
        needs=("Gather", "MatMul"),
    ),
    Pass(
        "fusing",
        "merge_row_products",
        "rows that one matrix multiplies one by one are multiplied at once",
        needs=(frozenset({"MatMul", "Gemm"}), frozenset({"Gather", "Slice"})),
    ),
    Pass(
        "fusing",
        "fuse_layer_norm",
        "means, deviations and quotients become LayerNormalization",
        "LayerNormalization",
        ("Add", "Mul", "Div", "ReduceMean"),
    ),
    Pass(
        "fusing",
        "fuse_rms_norm",
        "quotients by root mean squares become RMSNormalization",
        "RMSNormalization",
        ("ReduceMean",),
    ),
    Pass(
        "fusing",
        "fuse_gelu",
        "error functions, or tanh in their place, and products become Gelu",
        "Gelu",
        (frozenset({"Erf", "Tanh"}),),
    ),
    Pass(
        "fusing",
        "fuse_activations",
        "products with gates become Swish, HardSwish or Mish",
        needs=(frozenset({"Sigmoid", "HardSigmoid", "Clip", "Tanh", "Where"}),),
    ),
    Pass(
        "fusing",
        "fuse_attention",
        "softmax between two matrix products becomes Attention",
        "Attention",
        ("Softmax", "MatMul"),
    ),
    Pass(
        "fusing",
        "fuse_rotary",
        "halves that are swapped and turned by tables become RotaryEmbedding",
        "RotaryEmbedding",
        ("Add", "Mul", frozenset({"Split", "Slice"})),
    ),
    Pass(
        "expanding",
        "flatten_volumes",
        "convolutions of volumes by flat windows become those of images",
        needs=(VOLUMES,),
    ),
    Pass(
        "expanding",
        "spread_variable",
        "Gemm and BatchNormalization of parameters that vary are taken apart",
        needs=(frozenset({"Gemm", "BatchNormalization"}),),
    ),
    Pass(
        "expanding",
        "number_classes",
        "classifiers of texts give numbers, and the texts are looked up",
        needs=(frozenset({"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"}),),
    ),
    Pass(
        "expanding",
        "number_words",
        "words become numbers where their sequences are counted",
        needs=("TfIdfVectorizer",),
    ),
    # Patterns of exporters have reshapes in them; joined nodes go through them no more.
    Pass(
        "removing",
        "join_reshapes",
        "reshapes of reshapes become one or none",
        needs=(frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}),),
    ),
    Pass("removing", "remove_dead", "nodes that no output needs are removed"),
)
# Operators without a native kernel: taken apart they run compiled, whole on reference kernels.
LACKING: frozenset[str] = frozenset()
# Changes make room for others, but not often more than twice in a row.
_MOST_ROUNDS = 4


def optimize(
    graph: ir.Graph,
    types: GraphTypes,
    *,
    lacking: Collection[str] = LACKING,
    rooms: Collection[str] | None = None,
) -> list[Change]:
    """Apply all passes to a legalised, type-checked graph and its bodies; return their changes.

    Bodies of Loop, Scan and If are graphs like the one around them, whose constants they see.

    Args:
        graph: Changed in place; its values' types must be inferred anew afterwards.
        types: The types that inference found for it.
        lacking: Operators that no pass may make, since the engine has them in parts only.
        rooms: Those whose passes are applied; all if None.
    """
    applied = [
        one for one in PASSES if one.makes not in lacking and (rooms is None or one.room in rooms)
    ]
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
    return [Change(one.name, one.effect, tuple(changed[one.name]), one.shows) for one in applied]


def _operators(graphs: Sequence[ir.Graph]) -> Set[str]:
    """Return the operators of ONNX in some graphs, by name, and what stands for others."""
    found = set()
    for each in graphs:
        for node in each:
            found.add(node.op_type if onnx_schema(node.domain, node.op_type) else FOREIGN)
            if node.op_type == "Conv" and _may_be_of_volumes(node):
                found.add(VOLUMES)
    return found


def _may_be_of_volumes(node: ir.Node) -> bool:
    """Whether the filters of a convolution may have three axes of a window."""
    filters = node.inputs[1] if len(node.inputs) > 1 else None
    known = None if filters is None else filters.const_value
    return known is None or len(known.shape) == 5


__all__ = ["LACKING", "PASSES", "Change", "Pass", "optimize"]
