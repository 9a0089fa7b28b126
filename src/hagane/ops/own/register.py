"""``register_operator``: a user's operator, known to every part of hagane."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.types import Shape, TensorType, Type
from hagane.ops import rules
from hagane.ops.builder import TYPES, Typed, interpreting
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, declare
from hagane.ops.definition import CSource, InferRule, Kernel, OpDef, Unsupported, VjpRule
from hagane.ops.own.expression import composed_of
from hagane.ops.registry import add_operator
from hagane.ops.registry import forget_operator as forget
from hagane.ops.schema import Schema
from hagane.ops.traits import Trait
from hagane.ops.vjp import call_composed

_RULES: Mapping[str, InferRule] = {"same": rules.same_shape, "broadcast": rules.broadcast}
_PARAMETER = r"\s*[A-Za-z_]\w*\s*:\s*\w+\s*[?*]?\s*"
_SIGNATURE = re.compile(rf"({_PARAMETER}(,{_PARAMETER})*)?->{_PARAMETER}(,{_PARAMETER})*")
_TYPES = frozenset(ANY.split())
_NO_REFERENCE = Unsupported("it was registered with C source alone; give a reference kernel too")


def register_operator(
    name: str,
    *,
    domain: str,
    signature: str = "",
    types: Mapping[str, str] | None = None,
    attributes: Mapping[str, Any] | None = None,
    required: Sequence[str] = (),
    infer: Callable[[InferContext], Sequence[Shape | Type | None]] | str | None = None,
    reference: Kernel | None = None,
    compose: Kernel | None = None,
    expression: str = "",
    source: CSource | str | Path | None = None,
    entry: str = "",
    parallel: int = 0,
    vjp: VjpRule | None = None,
    traits: Trait = Trait.NONE,
) -> OpDef:
    """Make an operator known to checks, sessions, gradients and builds of this process.

    One at least of ``reference``, ``compose``, ``expression`` and ``source`` says what it
    computes. A second registration of a name takes the place of the first.

    Args:
        name: The operator type that nodes have.
        domain: Their domain: any but ONNX's and hagane's for operators that these define.
        signature: ``x:T, mask:bool? -> y:T``: inputs and outputs with their element types; ``?``
            marks optional ones, ``*`` one that may come any number of times. Capital letters stand
            for types. Of an expression it may be left out.
        types: The element types that a letter may stand for, as ONNX calls them: ``float
            double``; any if not given.
        attributes: The default of each attribute, or an ``onnx_ir.AttributeType`` where there is
            none. C source gets them in this order.
        required: Attributes that nodes have to give.
        infer: The type rule: takes the context of a node and returns the shape, or type, of each
            output, sizes being numbers or formulas; or ``same`` (the shape of the first input)
            or ``broadcast``. Of a composition it may be left out.
        reference: The meaning in NumPy, called with the inputs in order and those of the
            attributes that it names as keyword-only parameters.
        compose: The operator as others, by ``hagane.ops.builder.op``, called as the reference is.
            It is then fused, compiled and differentiated as these are.
        expression: The same for elements as a text: ``x * tanh(softplus(x))``.
        source: A kernel in C: the text, the path of a file that holds it, or both with the other
            arguments. It serves sessions and builds.
        entry: The function of the source that computes; of its operands, see docs/ship.md.
        parallel: So many leading axes of the first output are shared out between calls.
        vjp: The gradient; that of the composition if not given.
        traits: Properties that passes may rely on.

    Returns:
        The definition.

    Raises:
        InvalidArgument: The arguments do not make an operator; hagane defines it itself.
    """
    where = f"operator '{name}' of domain '{domain}'"
    if not name.isidentifier() or domain in ("", "ai.onnx"):
        raise InvalidArgument(f"{where}: expected a name and a domain of your own")
    if expression:
        if compose is not None:
            raise InvalidArgument(f"{where}: expected compose or expression, got both")
        names, compose = composed_of(expression, where, dict(attributes or {}))
        signature = signature or f"{', '.join(f'{each}:T' for each in names)} -> y:T"
        inputs = _inputs_of(signature)
        if set(names) - set(inputs):
            raise InvalidArgument(
                f"{where}: the expression reads '{min(set(names) - set(inputs))}', which is "
                f"neither an attribute nor an input of '{signature}'"
            )
        if names != inputs:
            compose = _in_order(compose, names, inputs)
    schema = _schema(where, signature, types or {}, attributes or {}, tuple(required))
    code = _source(where, source, entry, parallel)
    if reference is None and compose is None and code is None:
        raise InvalidArgument(f"{where}: expected one of reference, compose, expression, source")
    definition = OpDef(
        name,
        _rule(where, infer, compose),
        reference or (_NO_REFERENCE if compose is None else _reference_of(compose)),
        domain=domain,
        compose=compose,
        source=code,
        traits=traits,
    )
    if vjp is not None:
        definition = replace(definition, vjp=vjp)
    add_operator(definition, schema)
    return definition


def forget_operator(name: str, *, domain: str) -> None:
    """Take an operator that was registered out again; nothing happens if there is none."""
    forget((domain, name))


def _inputs_of(signature: str) -> tuple[str, ...]:
    return tuple(text.partition(":")[0].strip() for text in signature.split("->")[0].split(","))


def _in_order(compose: Kernel, names: Sequence[str], inputs: Sequence[str]) -> Kernel:
    """Return a composition that takes all inputs of a signature, in its order."""
    places = [inputs.index(name) for name in names]

    def ordered(*values: Any, attributes: Mapping[str, Any]) -> Any:
        return compose(*(values[place] for place in places), attributes=attributes)

    return ordered


def _schema(
    where: str,
    signature: str,
    types: Mapping[str, str],
    attributes: Mapping[str, Any],
    required: tuple[str, ...],
) -> Schema:
    if not _SIGNATURE.fullmatch(signature):
        raise InvalidArgument(
            f"{where}: signature '{signature}': expected a text such as 'x:T, mask:bool? -> y:T'"
        )
    letters = set(re.findall(r":\s*(\w+)", signature)) - _TYPES
    unknown = {each for each in letters if not each[0].isupper()}
    unknown |= {each for text in types.values() for each in text.split()} - _TYPES
    if unknown:
        raise InvalidArgument(
            f"{where}: unknown element type '{min(unknown)}'; "
            f"the types are: {', '.join(ANY.split())}"
        )
    left = sorted(set(required) - set(attributes))
    if left:
        raise InvalidArgument(f"{where}: attribute '{left[0]}' is required, and not declared")
    plain = re.sub(r"\s+([?*:])|(:)\s+", r"\1\2", signature)
    found = declare(plain, None, required, **{each: types.get(each, ANY) for each in letters})
    kinds = {key: _kind(where, key, value) for key, value in attributes.items()}
    defaults = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in attributes.items()
        if not isinstance(value, ir.AttributeType)
    }
    return replace(found, defaults=defaults, attribute_types=kinds)


def _kind(where: str, name: str, value: Any) -> ir.AttributeType:
    kinds = ir.AttributeType
    match value:
        case ir.AttributeType():
            return value
        case str():
            return kinds.STRING
        case int():
            return kinds.INT
        case float():
            return kinds.FLOAT
        case [*items] if items and all(isinstance(item, int) for item in items):
            return kinds.INTS
        case [*items] if items and all(isinstance(item, int | float) for item in items):
            return kinds.FLOATS
        case [*items] if items and all(isinstance(item, str) for item in items):
            return kinds.STRINGS
    raise InvalidArgument(
        f"{where}: attribute '{name}': expected a number, a text, a list of such, or an "
        f"onnx_ir.AttributeType, got {value!r}"
    )


def _source(
    where: str, source: CSource | str | Path | None, entry: str, parallel: int
) -> CSource | None:
    if source is None or isinstance(source, CSource):
        return source
    if isinstance(source, Path):
        try:
            source = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"{where}: its source cannot be read: {error}") from None
    if not entry.isidentifier() or not re.search(rf"\b{entry}\s*\(", source):
        raise InvalidArgument(f"{where}: the C source has no function '{entry}'; name it by entry=")
    return CSource(source, entry, parallel)


def _rule(where: str, infer: Any, compose: Kernel | None) -> InferRule:
    if isinstance(infer, str):
        if infer not in _RULES:
            raise InvalidArgument(
                f"{where}: infer '{infer}': expected a function, 'same' or 'broadcast'"
            )
        return _RULES[infer]
    if infer is not None:
        rule: InferRule = infer
        return rule
    if compose is None:
        raise InvalidArgument(
            f"{where}: expected a type rule, infer=, which returns the shape of each output; "
            "only that of a composition is found by itself"
        )
    return _inferred(compose)


def _inferred(compose: Kernel) -> InferRule:
    """Return the type rule of a composition: it is applied to types."""

    def infer(ctx: InferContext) -> Sequence[Shape | Type | None]:
        inputs = []
        for index in range(ctx.n_inputs):
            type_ = ctx.type(index) if ctx.has(index) else None
            if isinstance(type_, TensorType) and type_.shape is None:
                return [None] * ctx.n_outputs
            inputs.append(None if type_ is None else Typed(type_, ctx.data(index)))
        with interpreting(TYPES):
            found = call_composed(compose, inputs, ctx.attributes, ctx.n_outputs)
        if found is None:
            return [None] * ctx.n_outputs
        return [each.type if isinstance(each, Typed) else None for each in found]

    return infer


def _reference_of(compose: Kernel) -> Kernel:
    """Return the meaning of a composition: it is applied to arrays."""

    def reference(*inputs: Any, attributes: Mapping[str, Any], n_outputs: int) -> Any:
        with interpreting(None):
            found = call_composed(compose, inputs, attributes, n_outputs)
        assert found is not None
        return found

    return reference
