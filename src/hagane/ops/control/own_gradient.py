"""OwnGradient: values whose gradient a program computes by itself, of hagane's own.

Captured losses have it for functions with a backward pass of their own, such as those of
``torch.autograd.Function``. Once gradients are there, ``remove_own_gradients`` takes it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from hagane.graph.walk import all_nodes
from hagane.ops.builder import Call, op
from hagane.ops.builder.node import node_of
from hagane.ops.context import InferContext
from hagane.ops.definition import OpDef, RuntimeValue
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.own_schemas import DOMAIN
from hagane.ops.schema import Parameter, Schema
from hagane.ops.traits import Trait

OWN_GRADIENT = "OwnGradient"
# The key under which the result notes that all uses of the value that it stands for are its own.
HOOKED = "hagane.hooked"


def own_gradient(
    values: Sequence[Any], inputs: Sequence[Any], backward: Callable[..., Sequence[Any]]
) -> tuple[Any, ...]:
    """Return values with a gradient of their own.

    Args:
        values: Floating-point tensors; gradients by what they were computed from are passed over.
        inputs: The tensors to which gradients go on.
        backward: Takes the gradients of the values, zeros for those that nothing depends on, and
            returns one of each input, of its shape and element type. (An input of the node may be
            taken out, together with its output of the body: no gradient goes there.)
    """
    made = op(OWN_GRADIENT, *values, *inputs, domain=DOMAIN, outputs=len(values),
              results=len(values), backward=backward)  # fmt: skip
    return (made,) if len(values) == 1 else tuple(made)


def follow_hooks(graph: ir.Graph) -> None:
    """Let what was computed from a value with a hook follow from the result, in place.

    Gradients within a loss read results of nodes as they were before a hook came to them.
    """
    for node in [*all_nodes(graph)]:
        if node.op_type != OWN_GRADIENT or HOOKED not in node.outputs[0].meta:
            continue
        bare, hooked = node.inputs[0], node.outputs[0]
        assert bare is not None
        own = {node, *all_nodes(node.attributes["backward"].as_graph())}
        for user, place in tuple(bare.uses()):
            if user not in own:
                user.replace_input_with(place, hooked)


def remove_own_gradients(graph: ir.Graph) -> None:
    """Let the results be the values themselves, in bodies too, in place."""
    from hagane.ops.registry import operators

    identity = operators()["", "Identity"]
    for node in [*all_nodes(graph)]:
        if node.op_type != OWN_GRADIENT or node.domain != DOMAIN:
            continue
        outputs = [*node.outputs]
        same = [node_of(identity, [node.inputs[n]], {}, 1) for n in range(len(outputs))]
        home = node.graph
        assert home is not None
        home.insert_before(node, same)
        for old, new in zip(outputs, same, strict=True):
            name, new.outputs[0].shape, new.outputs[0].type = old.name, old.shape, old.type
            ir.convenience.replace_all_uses_with(old, new.outputs[0], replace_graph_outputs=True)
            old.name, new.outputs[0].name = None, name
        home.remove(node, safe=True)


def _infer(ctx: InferContext) -> Sequence[Any]:
    return [ctx.type(index) for index in range(ctx.n_outputs)]


def _same(
    *values: RuntimeValue, backward: Callable[..., Any], results: int
) -> tuple[RuntimeValue, ...]:
    del backward
    return values[:results]


def _composed(*values: Any, backward: Callable[..., Any], results: int) -> Any:
    del backward
    made = tuple(op("Identity", value) for value in values[:results])
    return made[0] if results == 1 else made


def _vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    pairs = zip(gradients, call.outputs, strict=True)
    found = call.attributes["backward"](*(zeros_like(y) if g is None else g for g, y in pairs))
    parts, count = iter(found), len(call.outputs)
    own = [None if x is None else next(parts) for x in call.inputs[count:]]
    return [*[None] * count, *own, *[None] * len(call.captured)]


_ANY = frozenset(f"tensor({name})" for name in ("float16", "bfloat16", "float", "double"))
OPERATORS = (
    OpDef(OWN_GRADIENT, _infer, _same, domain=DOMAIN, vjp=_vjp, compose=_composed,
          traits=Trait.FREE),
)  # fmt: skip
SCHEMAS = {
    (DOMAIN, OWN_GRADIENT): Schema(
        inputs=(Parameter("values", "T", _ANY, False, True, False),),
        outputs=(Parameter("same", "T", _ANY, False, True, False),),
        min_inputs=1,
        max_inputs=2**31 - 1,
        min_outputs=1,
        max_outputs=2**31 - 1,
        defaults={},
        attribute_types={"backward": ir.AttributeType.GRAPH, "results": ir.AttributeType.INT},
        required=frozenset({"backward", "results"}),
    )
}
