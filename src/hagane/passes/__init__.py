"""Graph to graph: each pass keeps what the outputs are and makes computing them cheaper.

A pass is a function from a graph and what is known of its values to the number of places it
changed; run again, it changes nothing. They are applied in the order of ``PASSES``, and again until
none changes anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.fold_batch_norm import fold_batch_norm
from hagane.passes.fold_pads import fold_pads
from hagane.passes.fuse_gelu import fuse_gelu
from hagane.passes.fuse_layer_norm import fuse_layer_norm
from hagane.passes.fuse_quantized import fuse_quantized
from hagane.passes.inline_branches import inline_branches
from hagane.passes.merge_common import merge_common
from hagane.passes.remove_dead import remove_dead
from hagane.passes.remove_identity import remove_identity

Pass = Callable[[ir.Graph, GraphTypes], int]


@dataclass(frozen=True, slots=True)
class Change:
    """How many places a pass changed."""

    name: str
    effect: str
    count: int


PASSES: tuple[tuple[Pass, str], ...] = (
    (inline_branches, "If nodes whose condition is known become the branch that they take"),
    (remove_identity, "Identity, and Dropout while not training, are passed over"),
    (merge_common, "equal nodes on equal inputs become one"),
    (fuse_quantized, "operators between dequantisation and quantisation become 8-bit ones"),
    (fold_pads, "zero padding becomes the padding of the convolution that reads it"),
    (fold_batch_norm, "batch normalisation by fixed statistics becomes weights of a convolution"),
    (fuse_layer_norm, "means, deviations and quotients become LayerNormalization"),
    (fuse_gelu, "the error function and its products become Gelu"),
    (remove_dead, "nodes that no output needs are removed"),
)
# Changes make room for others, but not often more than twice in a row.
_MOST_ROUNDS = 4


def optimize(graph: ir.Graph, types: GraphTypes) -> list[Change]:
    """Apply all passes to a legalised, type-checked graph and return what each did.

    Args:
        graph: Changed in place; its values' types must be inferred anew afterwards.
        types: What inference found for it.
    """
    counts = dict.fromkeys((one.__name__ for one, _ in PASSES), 0)
    for _ in range(_MOST_ROUNDS):
        changed = 0
        for one, _ in PASSES:
            count = one(graph, types)
            counts[one.__name__] += count
            changed += count
        if not changed:
            break
    return [Change(one.__name__, effect, counts[one.__name__]) for one, effect in PASSES]


__all__ = ["PASSES", "Change", "Pass", "optimize"]
