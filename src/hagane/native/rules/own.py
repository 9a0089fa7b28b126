"""Operators of users whose kernel is C source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.ops.definition import CSource
from hagane.ops.registry import find, schema_of
from hagane.symbolic import Dim, product

# Types of the arguments of a user's function; docs/ship.md shows them.
DECLARATIONS = """\
#ifndef HAGANE_OPERATOR
#define HAGANE_OPERATOR
typedef struct {
  void *data;           /* NULL for an input that is absent */
  int32_t type, rank;   /* the element type, as TensorProto.DataType of ONNX has it */
  const int64_t *shape; /* sizes of the axes */
} hagane_operand;
typedef struct {
  const char *text;     /* of texts */
  const int64_t *ints;  /* of whole numbers */
  const double *reals;  /* of other numbers */
  int64_t count;        /* how many */
} hagane_attribute;
#endif
"""
_OWN_HEADER = re.compile(r'^\s*#\s*include\s+[<"]hagane_operator\.h[">].*$', re.MULTILINE)


def lower_source(low: Lowering, node: ir.Node) -> None:
    """Lower a call of a user's function: operands in memory, row by row."""
    source = find(node).source
    assert source is not None
    inputs = [None if value is None else low.forms.contiguous(value) for value in node.inputs]
    outputs = [_result(low, value) for value in node.outputs]
    reads = {f"hg_x{i}": tensor for i, tensor in enumerate(inputs) if tensor is not None}
    writes = {f"hg_y{i}": tensor for i, tensor in enumerate(outputs)}
    sizes: dict[str, Dim] = {}
    lines = [
        *_operands("hg_in", "hg_x", inputs, node.inputs, low, sizes),
        *_operands("hg_out", "hg_y", outputs, node.outputs, low, sizes),
        *_attributes(low, node),
        f"const int64_t hg_code = {source.entry}(hg_in, hg_out, hg_with, first, last);",
        "if (hg_code != 0) hg_fail(thread, hg_code);",
    ]
    shape = outputs[0].shape
    split = min(source.parallel, len(shape))
    emit_written(
        low.recorder, node, "\n".join(lines), reads=reads, writes=writes, sizes=sizes,
        items=product(shape[:split]), each=product(shape[split:]), cost=source.cost,
        helper=_helper(source), failure=f"its C function {source.entry} returned {{value}}",
    )  # fmt: skip
    for value, tensor in zip(node.outputs, outputs, strict=True):
        if value.name:
            low.forms[value] = tensor


def _result(low: Lowering, value: ir.Value) -> Tensor:
    dtype = low.facts.dtype(value)
    if dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        raise NotNative(f"element type {dtype.name}")
    if value.name:
        return low.forms.result(value)
    return low.recorder.new("unread", dtype, low.facts.shape(value))


def _helper(source: CSource) -> str:
    """Return the source, which a unit of several kernels has once."""
    text = _OWN_HEADER.sub("", source.text)
    name = "HAGANE_SOURCE_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{DECLARATIONS}#ifndef {name}\n#define {name}\n{text}\n#endif\n"


def _operands(
    name: str,
    data: str,
    tensors: Sequence[Tensor | None],
    values: Sequence[ir.Value | None],
    low: Lowering,
    sizes: dict[str, Dim],
) -> list[str]:
    """Return the C of an array of operands; its sizes are added to ``sizes``."""
    lines, rows = [], []
    for i, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
        if tensor is None:
            rows.append("{0, 0, 0, 0}")
            continue
        names = [f"{data}{i}_{axis}" for axis in range(len(tensor.shape))]
        sizes.update(zip(names, tensor.shape, strict=True))
        lines.append(f"const int64_t {data}{i}_shape[] = {{{', '.join([*names, '0'])}}};")
        number = int(low.facts.type(value).dtype)
        rows.append(f"{{(void *){data}{i}, {number}, {len(names)}, {data}{i}_shape}}")
    rows.append("{0, 0, 0, 0}")
    return [*lines, f"const hagane_operand {name}[] = {{{', '.join(rows)}}};"]


def _attributes(low: Lowering, node: ir.Node) -> list[str]:
    """Return the C of the attributes, in the order in which they were declared."""
    given = low.facts.attributes(node)
    rows = [_attribute(name, given.get(name)) for name in schema_of(node).attribute_types]
    return [f"const hagane_attribute hg_with[] = {{{', '.join([*rows, '{0, 0, 0, 0}'])}}};"]


def _attribute(name: str, value: Any) -> str:
    if value is None:
        return "{0, 0, 0, 0}"
    if isinstance(value, str):
        content = value.encode()
        quoted = "".join(f"\\{byte:03o}" for byte in content)
        return f'{{"{quoted}", 0, 0, {len(content)}}}'
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if all(isinstance(number, int) for number in numbers):
        texts = ", ".join([*(f"{number}L" for number in numbers), "0"])
        return f"{{0, (const int64_t[]){{{texts}}}, 0, {len(numbers)}}}"
    if not all(isinstance(number, int | float) for number in numbers):
        raise NotNative(f"attribute '{name}': its C function takes numbers and texts")
    texts = ", ".join([*(_real(float(number)) for number in numbers), "0"])
    return f"{{0, 0, (const double[]){{{texts}}}, {len(numbers)}}}"


def _real(number: float) -> str:
    if number != number:
        return '__builtin_nan("")'
    if number in (float("inf"), float("-inf")):
        return f"{'-' if number < 0 else ''}__builtin_inf()"
    return number.hex()
