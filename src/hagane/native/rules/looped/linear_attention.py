"""LinearAttention: the state of a head stays near while its tokens pass."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule

# Columns of a state have nothing to do with each other: so many stay near at once.
_COLUMNS = 32

# What the state forgets, and what it knows of a key; then the key's value goes in, and out of it
# what the queries ask: two passes over the columns for a token.
_COLUMN_STEPS = """
for (int64_t d = 0; d < dk; d++) for (int64_t m = 0; m < {wide}; m++) state[d * {columns} + m] = {begin};
for (int64_t t = 0; t < steps; t++) {{
const int64_t row = batch * steps + t;
const float *key = keys + (row * heads + head) * dk, *value = values + (row * heads + head) * dv + m0;
const float *query = queries + (row * heads + head) * {group} * dk;
float news[{columns}], out[{group} * {columns}];
for (int m = 0; m < {columns}; m++) news[m] = 0;
for (int m = 0; m < {group} * {columns}; m++) out[m] = 0;
{forget}
for (int64_t m = 0; m < {wide}; m++) news[m] = {learn};
for (int64_t d = 0; d < dk; d++) {{
float *restrict line = state + d * {columns}; const float a = key[d];
for (int64_t m = 0; m < {wide}; m++) line[m] += a * news[m];
for (int g = 0; g < {group}; g++) {{
const float b = query[g * dk + d] * scale;
for (int64_t m = 0; m < {wide}; m++) out[g * {columns} + m] += b * line[m]; }} }}
for (int g = 0; g < {group}; g++) for (int64_t m = 0; m < {wide}; m++)
y[((row * heads + head) * {group} + g) * dv + m0 + m] = out[g * {columns} + m]; }}
{end}"""


def lower_linear_attention(low: Lowering, node: ir.Node) -> None:
    """Lower LinearAttention of float32.

    Raises:
        NotNative: Of other elements, sizes of heads that only a run knows, or gates that the rule
            of the state does not use.
    """
    attributes = low.facts.attributes(node)
    given = [*node.inputs, *[None] * (6 - len(node.inputs))]
    q, k, v, past, decay, beta = (
        None if value is None else low.forms.contiguous(value) for value in given
    )
    assert q is not None and k is not None and v is not None  # noqa: PT018
    present = [each for each in (q, k, v, past, decay, beta) if each is not None]
    if any(each.dtype != np.float32 for each in present):
        raise NotNative("elements other than float32")
    rule, heads = str(attributes["update_rule"]), int(attributes["kv_num_heads"])
    gated, delta = rule.startswith("gated"), rule.endswith("delta")
    if gated != (decay is not None) or delta != (beta is not None):
        raise NotNative(f"gates that '{rule}' has not")
    if not isinstance(k.shape[2], int) or not isinstance(v.shape[2], int):
        raise NotNative("heads of open sizes")
    dk, dv = k.shape[2] // heads, v.shape[2] // heads
    y, reads = low.forms.result(node.outputs[0]), {"queries": q, "keys": k, "values": v}
    writes = {"y": y}
    begin, learn, kept = "0", "value[m]", ""
    place = "[(item / blocks * dk + d) * dv + m0 + m]"
    if past is not None:
        reads["past"], begin = past, f"past{place}"
    end = ""
    if len(node.outputs) > 1 and low.facts.uses(node.outputs[1]):
        writes["present"] = low.forms.result(node.outputs[1])
        end = (
            "for (int64_t d = 0; d < dk; d++) for (int64_t m = 0; m < WIDE; m++) "
            f"present{place} = state[d * {_COLUMNS} + m];"
        )
    if decay is not None:
        reads["decay"] = decay
        if decay.shape[2] not in (heads, heads * dk):
            raise NotNative("gates of open sizes")
        whole = decay.shape[2] == heads
        kept = f"expf(decay[{'row * heads + head' if whole else '(row * heads + head) * dk + d'}])"
    if beta is not None:
        reads["beta"] = beta
        if beta.shape[2] not in (1, heads):
            raise NotNative("gates of open sizes")
        rate = "beta[row]" if beta.shape[2] == 1 else "beta[row * heads + head]"
        learn = f"(value[m] - news[m]) * {rate}"
    forget = ""
    if kept or delta:
        once = decay is not None and decay.shape[2] == heads
        forget = f"""{f"const float whole = {kept};" if once else ""}
for (int64_t d = 0; d < dk; d++) {{
float *restrict line = state + d * {_COLUMNS}; const float a = key[d], by = {"whole" if once else kept or "1"}; (void)a, (void)by;
for (int64_t m = 0; m < WIDE; m++) {{
const float v = line[m]{" * by" if kept else ""}; line[m] = v;{" news[m] += a * v;" if delta else ""} }} }}"""
    group = int(attributes["q_num_heads"]) // heads

    def columns(wide: object) -> str:
        return _COLUMN_STEPS.format(
            wide=wide, columns=_COLUMNS, group=group, begin=begin, learn=learn,
            forget=forget.replace("WIDE", str(wide)), end=end.replace("WIDE", str(wide)),
        )  # fmt: skip

    scale = float(attributes["scale"]) or float(dk) ** -0.5
    emit_written(
        low.recorder, node,
        f"""
const float scale = {float(np.float32(scale)).hex()}f;
const int64_t blocks = (dv + {_COLUMNS - 1}) / {_COLUMNS};
float *restrict state = (float *)thread->scratch;
for (int64_t item = first; item < last; item++) {{
const int64_t batch = item / blocks / heads, head = item / blocks % heads;
const int64_t m0 = item % blocks * {_COLUMNS}, w = hg_min({_COLUMNS}, dv - m0);
if (w == {_COLUMNS}) {{ {columns(_COLUMNS)} }} else {{ {columns("w")} }} }}""",
        reads=reads, writes=writes, sizes={"steps": q.shape[1], "heads": heads, "dk": dk, "dv": dv},
        items=q.shape[0] * (heads * -(-dv // _COLUMNS)), each=q.shape[1] * (dk * _COLUMNS),
        cost=0.1 + 0.06 * group, scratch=4 * dk * _COLUMNS,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y
    if "present" in writes:
        low.forms[node.outputs[1]] = writes["present"]


RULES: dict[tuple[str, str], Rule] = {("", "LinearAttention"): lower_linear_attention}
