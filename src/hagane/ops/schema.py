"""ONNX's own description of an operator: parameters, element types, attribute defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
import onnx.defs
import onnx_ir as ir

from hagane.graph.opsets import CURRENT_OPSETS
from hagane.graph.types import MapType, OptionalType, SequenceType, TensorType, Type, dtype_name

# The last version that ONNX defines for operators which it has since deprecated.
_LAST_VERSIONS = {
    # Integers, which opset 28 takes away.
    ("", "ReduceLogSum"): 18,
    ("", "ReduceLogSumExp"): 18,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): 3,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): 3,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One formal input or output."""

    name: str
    type_variable: str
    types: frozenset[str]
    optional: bool
    variadic: bool
    homogeneous: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """Formal inputs, outputs and attribute defaults of the current form of an operator."""

    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    defaults: Mapping[str, Any]
    attribute_types: Mapping[str, ir.AttributeType]
    required: frozenset[str]

    def input(self, index: int) -> Parameter:
        """Return the formal parameter of input ``index``; the last one may repeat."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def output(self, index: int) -> Parameter:
        """Return the formal parameter of output ``index``; the last one may repeat."""
        return self.outputs[min(index, len(self.outputs) - 1)]


@cache
def onnx_schema(domain: str, name: str) -> Schema | None:
    """Return the schema of an operator of ONNX's own domains, None for others."""
    version = _LAST_VERSIONS.get((domain, name), CURRENT_OPSETS.get(domain, 1))
    try:
        found = onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None
    return convert(found)


def convert(schema: Any) -> Schema:
    """Return the part of an ``onnx.defs.OpSchema`` that hagane uses."""
    attributes = schema.attributes
    return Schema(
        inputs=tuple(map(_parameter, schema.inputs)),
        outputs=tuple(map(_parameter, schema.outputs)),
        min_inputs=schema.min_input,
        max_inputs=schema.max_input,
        min_outputs=schema.min_output,
        max_outputs=schema.max_output,
        defaults={
            name: _plain(onnx.helper.get_attribute_value(attribute.default_value))
            for name, attribute in attributes.items()
            if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
        },
        attribute_types={
            name: ir.AttributeType(_ATTRIBUTE_TYPES[attribute.type.name])
            for name, attribute in attributes.items()
        },
        required=frozenset(name for name, a in attributes.items() if a.required),
    )


_ATTRIBUTE_TYPES = dict(onnx.AttributeProto.AttributeType.items())


def _parameter(parameter: Any) -> Parameter:
    option = parameter.option.name
    return Parameter(
        name=parameter.name,
        type_variable=parameter.type_str,
        types=frozenset(parameter.types),
        optional=option == "Optional",
        variadic=option == "Variadic",
        homogeneous=parameter.is_homogeneous,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    return value


_SCHEMA_NAMES = {
    ir.DataType.FLOAT: "float",
    ir.DataType.DOUBLE: "double",
}


def type_string(type_: Type) -> str:
    """Return ``type_`` as schemas write it, such as ``seq(tensor(float))``."""
    match type_:
        case TensorType(dtype=dtype):
            return f"tensor({_SCHEMA_NAMES.get(dtype, dtype.name.lower())})"
        case SequenceType(element=element):
            return f"seq({type_string(element) if element else '?'})"
        case OptionalType(element=element):
            return f"optional({type_string(element) if element else '?'})"
        case MapType(key=key, value=value):
            return f"map({_SCHEMA_NAMES.get(key, key.name.lower())},{type_string(value)})"


def tensor_dtype(text: str) -> ir.DataType | None:
    """Return the element type of a schema string ``tensor(x)``, None for containers."""
    if not text.startswith("tensor("):
        return None
    name = text.removeprefix("tensor(").removesuffix(")")
    return ir.DataType[name.upper()]


_FLOATS = frozenset(f"tensor({name})" for name in ("float16", "bfloat16", "float", "double"))
_SIGNED = frozenset(f"tensor(int{bits})" for bits in (8, 16, 32, 64))
_UNSIGNED = frozenset(f"tensor(uint{bits})" for bits in (8, 16, 32, 64))


def describe_types(types: frozenset[str]) -> str:
    """Return a set of allowed types in words: ``a floating-point``, ``an integer``."""
    if types <= _FLOATS and len(types) > 2:
        return "a floating-point"
    if types <= _SIGNED | _UNSIGNED and len(types) > 2:
        return "an integer"
    if types == {"tensor(bool)"}:
        return "a boolean"
    if types == {"tensor(string)"}:
        return "a string"
    if types <= _FLOATS | _SIGNED | _UNSIGNED and len(types) > 4:
        return "a numeric"
    if all(text.startswith("seq(") for text in types):
        return "a sequence"
    names = sorted(_pretty(text) for text in types)
    return f"a {' or '.join(names)}" if len(names) <= 4 else f"a {', '.join(names)}"


def _pretty(text: str) -> str:
    dtype = tensor_dtype(text)
    return text if dtype is None else dtype_name(dtype)
