"""GatherND and ScatterND: tuples of indices; TensorScatter: a stretch of a cache."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.written import as_bits, bits_type, emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import axis_of, number_input, whole_numbers
from hagane.native.rules.indexing.elements import copied, put
from hagane.symbolic import Dim, ceildiv, product

# Elements of a slice that one task handles at most.
_PIECE = 2048


def _tuple(length: int, batch: int) -> str:
    """Return C text that adds the place of tuple ``t`` to ``at``, each index checked."""
    return "\n".join(
        f"{{ int64_t i = t[{i}]; "
        f"if (i < -X{batch + i} || i >= X{batch + i}) {{ hg_fail(thread, i); return; }} "
        f"at += (i < 0 ? i + X{batch + i} : i) * S{batch + i}; }}"
        for i in range(length)
    )


def _length(low: Lowering, value: ir.Value | None) -> int:
    shape = low.facts.shape(value)
    if not shape or not isinstance(shape[-1], int):
        raise NotNative("tuples of a length known only at run time")
    return shape[-1]


def lower_gather_nd(low: Lowering, node: ir.Node) -> None:
    """Lower GatherND of any element type."""
    index = whole_numbers(low, node.inputs[1])
    length, batch = _length(low, node.inputs[1]), int(low.facts.attributes(node)["batch_dims"])
    x = as_bits(low.forms.contiguous(node.inputs[0]))
    y = low.forms.result(node.outputs[0])
    inner = product(x.shape[batch + length :])
    of_batch = product(index.shape[batch:-1])
    equal = [f"index_{i} != X{i}" for i in range(batch) if index.shape[i] != x.shape[i]]
    text = f"""
{f"if ({' || '.join(equal)}) {{ hg_fail(thread, 0); return; }}" if equal else ""}
for (int64_t row = first; row < last; row++) {{
const I *t = index + row * {length}; (void)t;
int64_t at = {"0" if batch == 0 else "row / of_batch * step"};
{_tuple(length, batch)}
T *to = y + row * n; const T *from = x + at;
for (int64_t k = 0; k < n; k++) to[k] = from[k];
}}"""
    sizes: dict[str, Dim] = {
        **{f"X{i}": dim for i, dim in enumerate(x.shape)},
        **{f"S{i}": dim for i, dim in enumerate(x.strides)},
        **{f"index_{i}": index.shape[i] for i in range(batch)},
        "n": inner, "of_batch": of_batch, "step": product(x.shape[batch:]),
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "index": index}, writes={"y": as_bits(y)}, sizes=sizes,
        types={"T": bits_type(x.dtype), "I": f"{index.dtype.name}_t"},
        items=product(index.shape[:-1]), each=inner + length,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_scatter_nd(low: Lowering, node: ir.Node) -> None:
    """Lower ScatterND; tuples may repeat, so threads share the slices that they point to."""
    index = whole_numbers(low, node.inputs[1])
    if not index.shape:
        raise NotNative("indices without axes")
    y = copied(low, node)
    updates, join, types = put(low, node, y)
    into = as_bits(y) if join == "*to = u;" else y
    rank, lead = len(y.shape), len(index.shape) - 1
    inner, count = product(updates.shape[lead:]), product(index.shape[:-1])
    dims, steps = (", ".join(f"{name}{i}" for i in range(rank)) or "1" for name in "XS")
    text = f"""
const int64_t dims[] = {{{dims}}}, steps[] = {{{steps}}};
int64_t slice = 1;
for (int64_t i = length; i < {rank}; i++) slice *= dims[i];
if (length > {rank} || slice != n || total != count * n) {{ hg_fail(thread, total); return; }}
int64_t j0 = q * {_PIECE}, j1 = hg_min(j0 + {_PIECE}, n);
for (int64_t row = 0; row < count; row++) {{
const I *t = index + row * length;
int64_t at = 0;
for (int64_t k = 0; k < length; k++) {{
int64_t i = t[k];
if (i < -dims[k] || i >= dims[k]) {{ hg_fail(thread, i); return; }}
at += (i < 0 ? i + dims[k] : i) * steps[k];
}}
for (int64_t j = j0; j < j1; j++) {{ T u = updates[row * n + j], *to = y + at + j; {join} }}
}}"""
    sizes: dict[str, Dim] = {
        **{f"X{i}": dim for i, dim in enumerate(y.shape)},
        **{f"S{i}": dim for i, dim in enumerate(y.strides)},
        "n": inner, "count": count, "total": updates.size, "length": index.shape[-1],
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads={"index": index, "updates": updates}, writes={"y": into}, sizes=sizes,
        types={"T": types["T"], "I": f"{index.dtype.name}_t"},
        tasks=ceildiv(inner, _PIECE), cost=2000.0,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_tensor_scatter(low: Lowering, node: ir.Node) -> None:
    """Lower TensorScatter: each entry of a batch writes at a position of its own."""
    y = copied(low, node)
    update = as_bits(low.forms.contiguous(node.inputs[1]))
    starts = number_input(low, node, 2)
    axis = axis_of(low, node, len(y.shape))
    reads = {"update": update}
    if starts is not None:
        reads["starts"] = whole_numbers(low, starts)
    circular = low.facts.attributes(node)["mode"] == "circular"
    outer = product(y.shape[1:axis])
    text = f"""
int64_t entry = q / outer;
int64_t start = {"starts[entry]" if starts is not None else "0"};
const T *from = update + q * length * n; T *to = y + q * room * n;
{
        "if (start < 0) { hg_fail(thread, start); return; }"
        if circular
        else "if (start < 0 || start + length > room) { hg_fail(thread, start); return; }"
    }
for (int64_t i = 0; i < length; i++) {{
int64_t at = {"(start + i) % room" if circular else "start + i"};
for (int64_t k = 0; k < n; k++) to[at * n + k] = from[i * n + k];
}}"""
    if circular and not isinstance(y.shape[axis], int):
        text = "if (room == 0) { hg_fail(thread, 0); return; }\n" + text
    sizes: dict[str, Dim] = {
        "outer": outer, "length": update.shape[axis], "room": y.shape[axis],
        "n": product(y.shape[axis + 1 :]),
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"y": as_bits(y)}, sizes=sizes, types={"T": bits_type(y.dtype)},
        tasks=y.shape[0] * outer, cost=100.0,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_array_feature_extractor(low: Lowering, node: ir.Node) -> None:
    """Lower ArrayFeatureExtractor: columns chosen by indices."""
    x = as_bits(low.forms.contiguous(node.inputs[0]))
    index = whole_numbers(low, node.inputs[1])
    y = low.forms.result(node.outputs[0])
    text = """
for (int64_t row = first; row < last; row++)
for (int64_t k = 0; k < count; k++) {
int64_t at = index[k];
if (at < -n || at >= n) { hg_fail(thread, at); return; }
y[row * count + k] = x[row * n + (at < 0 ? at + n : at)];
}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "index": index}, writes={"y": as_bits(y)},
        sizes={"n": x.shape[-1], "count": index.size}, types={"T": bits_type(x.dtype)},
        items=product(x.shape[:-1]), each=index.size,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_reverse_sequence(low: Lowering, node: ir.Node) -> None:
    """Lower ReverseSequence: each sequence of a batch backwards, as far as its length."""
    x, lengths = low.forms.contiguous(node.inputs[0]), whole_numbers(low, node.inputs[1])
    rank = len(x.shape)
    batch, time = (axis_of(low, node, rank, name) for name in ("batch_axis", "time_axis"))
    if {batch, time} != {0, 1}:
        raise NotNative("axes that are not the first two")
    y = low.forms.result(node.outputs[0])
    text = f"""
for (int64_t row = first; row < last; row++) {{
int64_t b = {"row / steps" if batch == 0 else "row % batch"};
int64_t t = {"row % steps" if batch == 0 else "row / batch"};
int64_t length = lengths[b];
if (length < 0 || length > steps) {{ hg_fail(thread, length); return; }}
if (t < length) t = length - 1 - t;
const T *from = x + {"(b * steps + t)" if batch == 0 else "(t * batch + b)"} * n;
T *to = y + row * n;
for (int64_t k = 0; k < n; k++) to[k] = from[k];
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(x), "lengths": lengths}, writes={"y": as_bits(y)},
        sizes={"batch": x.shape[batch], "steps": x.shape[time], "n": product(x.shape[2:])},
        types={"T": bits_type(x.dtype)},
        items=x.shape[0] * x.shape[1], each=product(x.shape[2:]) + 4, cost=0.3,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "GatherND"): lower_gather_nd,
    ("", "ReverseSequence"): lower_reverse_sequence,
    ("", "ScatterND"): lower_scatter_nd,
    ("", "TensorScatter"): lower_tensor_scatter,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): lower_array_feature_extractor,
}
