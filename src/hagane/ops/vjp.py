"""Forms of gradient rules that many operators share, and reasons for having none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from hagane.ops.definition import Unsupported, VjpRule
from hagane.ops.functions.tensors.shapes import reshape_like, unbroadcast

if TYPE_CHECKING:
    from hagane.ops.builder.interpreter import Call

DISCRETE = Unsupported("its results are integers or truth values, which have no gradient")
ROUNDED = Unsupported(
    "it rounds to few values, where a gradient is zero or undefined: train the model before it is "
    "quantised"
)
PACKED = Unsupported("its weights are packed integers: dequantise them before training")
DRAWN = Unsupported("its result is drawn at random: small changes of its input change it by jumps")
CLASSICAL = Unsupported("it belongs to classical models, which are run here and trained elsewhere")
CACHED = Unsupported("it serves generation from caches: train with Attention of ONNX")
TEXT = Unsupported("it works on text, which has no gradient")
CONSTANT = Unsupported("its result depends on no value that could have a gradient")


def elementwise(rule: Callable[[Any, Any, Any], Any]) -> VjpRule:
    """Return the gradient of a function of one value.

    Args:
        rule: Maps the gradient of the result, the operand and the result to the gradient of the
            operand.
    """

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        return [rule(gradients[0], call.inputs[0], call.outputs[0])]

    return vjp


def broadcasting(*rules: Callable[[Any, Call], Any] | None) -> VjpRule:
    """Return the gradient of an operator whose operands broadcast against each other.

    Args:
        rules: One an operand: map the gradient of the result and the call to the gradient of the
            broadcast operand. None for an operand that has no gradient.
    """

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        def lazily(rule: Callable[[Any, Call], Any], operand: Any) -> Callable[[], Any]:
            return lambda: unbroadcast(rule(gradients[0], call), operand)

        pairs = zip(rules, call.inputs, strict=True)
        return [None if rule is None else lazily(rule, operand) for rule, operand in pairs]

    return vjp


def through(composed: Callable[..., Any]) -> VjpRule:
    """Return the gradient of an operator that is others over the builder.

    Args:
        composed: The operator as others: takes the inputs, and those of the attributes, with their
            defaults, that it names; ``n_outputs`` too if it names that.
    """
    parameters = signature(composed).parameters.values()
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        from hagane.ops.gradient import pull_back
        from hagane.ops.registry import schema

        attributes = {name: call.attr(name) for name in names if call.attr(name) is not None}
        if "attributes" in names:
            defaults = schema(*call.op.key).defaults
            attributes["attributes"] = {**defaults, **call.attributes}
        if takes_all:
            attributes |= call.attributes
        if "n_outputs" in names:
            attributes["n_outputs"] = len(call.outputs)

        def function(*inputs: Any) -> Sequence[Any]:
            made = composed(*inputs, **attributes)
            return made if isinstance(made, tuple) else (made,)

        results, pull = pull_back(function, *call.inputs)
        # Compositions may compute 16-bit floats in float32, and leave their results so.
        typed = [_as(g, y) for g, y in zip(gradients, results, strict=False)]
        return pull([*typed, *(None for _ in results[len(gradients) :])])

    return vjp


def _as(gradient: Any, like: Any) -> Any:
    """Return a gradient in the element type of a value, where both are known."""
    from hagane.graph.types import TensorType
    from hagane.ops.builder import op, type_of

    if gradient is None:
        return None
    given, wanted = type_of(gradient), type_of(like)
    if not (isinstance(given, TensorType) and isinstance(wanted, TensorType)):
        return gradient
    return gradient if given.dtype == wanted.dtype else op("Cast", gradient, to=wanted.dtype)


def call_composed(
    compose: Callable[..., Any],
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    n_outputs: int,
) -> Sequence[Any] | None:
    """Call a composition with those keywords that it names, as reference kernels are called."""
    parameters = signature(compose).parameters.values()
    names = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    keywords = {name: attributes[name] for name in names if name in attributes}
    more = {"attributes": attributes, "n_outputs": n_outputs}
    result = compose(*inputs, **keywords, **{key: more[key] for key in more if key in names})
    return result if isinstance(result, tuple) or result is None else (result,)


def reshaped(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """The first operand has only got another shape."""
    x, *rest = call.inputs
    return [lambda: reshape_like(gradients[0], x), *(None for _ in rest)]


def flat(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """The result is constant almost everywhere: the gradient is zero."""
    return [None] * len(call.inputs)
