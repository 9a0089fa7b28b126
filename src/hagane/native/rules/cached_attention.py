"""GroupQueryAttention: keys and values go into caches of any fill, then queries meet them."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import new_size
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input, whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers
from hagane.symbolic import Dim, ceildiv, floordiv

# Rows of queries of one task, of all heads that share keys.
_ROWS = 16
# Multiplications and additions of a nanosecond.
_FLOPS_PER_NS = 40.0

# Turns the first numbers of a head by the angles of a position (Su et al., "RoFormer", 2021).
_TURN = """
static int KERNEL_turn(float *to, const float *from, const float *cosines, const float *sines,
                       int64_t at, int64_t longest, int64_t half, int64_t size) {
at += at < 0 ? longest : 0;
if (at < 0 || at >= longest) return 0;
const float *c = cosines + at * half, *s = sines + at * half;
for (int64_t i = 0; i < half; i++) {
const int64_t a = FIRST, b = SECOND;
to[a] = from[a] * c[i] - from[b] * s[i];
to[b] = from[b] * c[i] + from[a] * s[i]; }
for (int64_t i = 2 * half; i < size; i++) to[i] = from[i];
return 1; }
"""
# Some rows times some keys; some rows of probabilities times the values of some keys, added up.
_PRODUCTS = """
INLINE void KERNEL_scores(const float *q, const float *k, float *to, int64_t size, int64_t keys, const int R, const int C) {
vf sum[4][4] = {0};
for (int64_t i = 0; i < size; i += VL) {
vf own[4];
for (int c = 0; c < C; c++) own[c] = size - i >= VL ? v_load(k + c * size + i) : v_load_n(k + c * size + i, size - i);
for (int r = 0; r < R; r++) {
const vf x = size - i >= VL ? v_load(q + r * size + i) : v_load_n(q + r * size + i, size - i);
for (int c = 0; c < C; c++) sum[r][c] = v_fma(x, own[c], sum[r][c]); } }
for (int r = 0; r < R; r++) for (int c = 0; c < C; c++) to[r * keys + c] = v_sum(sum[r][c]); }
INLINE void KERNEL_sums(const float *p, const float *v, float *to, int64_t size, int64_t keys, int64_t count, int64_t wide, const int R) {
vf sum[4];
for (int r = 0; r < R; r++) sum[r] = v_load_n(to + r * size, wide);
for (int64_t t = 0; t < count; t++) {
const vf x = wide >= VL ? v_load(v + t * size) : v_load_n(v + t * size, wide);
for (int r = 0; r < R; r++) sum[r] = v_fma(v_set1(p[r * keys + t]), x, sum[r]); }
for (int r = 0; r < R; r++) v_store_n(to + r * size, sum[r], wide); }
static void KERNEL_all_scores(const float *q, const float *k, float *to, int64_t size, int64_t keys, int64_t rows, int64_t from, int64_t end) {
for (int64_t t = from; t < end; t += t + 4 <= end ? 4 : 1)
for (int64_t r = 0; r < rows; r += r + 4 <= rows ? 4 : 1) {
const float *own = q + r * size, *at = k + t * size; float *into = to + r * keys + t;
if (t + 4 <= end && r + 4 <= rows) KERNEL_scores(own, at, into, size, keys, 4, 4);
else if (t + 4 <= end) KERNEL_scores(own, at, into, size, keys, 1, 4);
else if (r + 4 <= rows) KERNEL_scores(own, at, into, size, keys, 4, 1);
else KERNEL_scores(own, at, into, size, keys, 1, 1); } }
static void KERNEL_all_sums(const float *p, const float *v, float *to, int64_t size, int64_t keys, int64_t rows, int64_t from, int64_t end) {
memset(to, 0, (size_t)(rows * size) * 4);
for (int64_t t = from; t < end; t += 64) {
const int64_t count = hg_min(64, end - t);
for (int64_t i = 0; i < size; i += VL) {
const int64_t wide = hg_min(VL, size - i);
for (int64_t r = 0; r < rows; r += r + 4 <= rows ? 4 : 1) {
const float *own = p + r * keys + t, *at = v + t * size + i; float *into = to + r * size + i;
if (r + 4 <= rows) KERNEL_sums(own, at, into, size, keys, count, wide, 4);
else KERNEL_sums(own, at, into, size, keys, count, wide, 1); } } } }
"""
# Of the scores ``x`` of a row the probabilities of keys ``low`` to ``high``.
_SOFTMAX = """
vf top = v_set1(-INFINITY), sum = v_set1(0);
for (int64_t t = low; t < high; t += VL) {{
const int64_t n = hg_min(VL, high - t);
vf s = v_load_n(x + t, n) * {scale};
{more}
s = v_sel(v_load_n(ones, n) > 0.f, s, v_set1(-INFINITY));
top = v_max2(top, s);
v_store_n(x + t, s, n); }}
float most = v_top(top);
{sink}
for (int64_t t = low; t < high; t += VL) {{
const int64_t n = hg_min(VL, high - t);
vf e = v_exp_share(v_load_n(x + t, n) - most);
e = v_sel(v_load_n(ones, n) > 0.f, e, v_set1(0));
sum += e;
v_store_n(x + t, e, n); }}
const float by = 1 / (v_sum(sum){rest});
for (int64_t t = from; t < end; t++) x[t] = t < low || t >= high ? 0 : x[t] * by;"""


def lower_group_query_attention(low: Lowering, node: ir.Node) -> None:
    """Lower GroupQueryAttention over caches whose fill a run tells."""
    attributes = low.facts.attributes(node)
    query = low.forms.contiguous(node.inputs[0])
    if not low.facts.is_float(node.inputs[0]):
        raise NotNative(f"element type {query.dtype}")
    heads, groups = int(attributes["num_heads"]), int(attributes["kv_num_heads"])
    share = heads // groups
    batch, length, width = query.shape
    packed = node.inputs[1] is None
    size = floordiv(width, heads + 2 * groups if packed else heads)
    key = query if packed else low.forms.contiguous(node.inputs[1])
    value = query if packed else low.forms.contiguous(node.inputs[2])
    sizes: dict[str, Dim] = {
        "length": length, "size": size, "q_row": width, "k_row": key.shape[2],
        "v_row": value.shape[2], "k_first": heads * size if packed else 0,
        "v_first": (heads + groups) * size if packed else 0,
    }  # fmt: skip
    reads = {"fill": whole_numbers(low, node.inputs[5])}
    room, past = _room(low, node)
    sizes |= {"room": room, "before": past[0].shape[2] if past else 0}
    turning = {"cosines": low.forms.contiguous(node.inputs[7]), "sines": low.forms.contiguous(
        node.inputs[8])} if attributes["do_rotary"] else {}  # fmt: skip
    if turning:
        sizes |= {"longest": turning["cosines"].shape[0], "half": turning["cosines"].shape[1]}
    position = "start + s"
    ids = number_input(low, node, 9)
    if turning and ids is not None:
        turning["places"] = whole_numbers(low, ids)
        position = "places[b * length + s]"
    caches = [_cache(low, node, index, (batch, groups, room, size)) for index in (1, 2)]
    turn = ""
    if turning:
        pairs = ("2 * i", "2 * i + 1") if attributes["rotary_interleaved"] else ("i", "i + half")
        turn = _TURN.replace("FIRST", pairs[0]).replace("SECOND", pairs[1])
    start = "const int64_t start = hg_max((int64_t)fill[b] + 1 - length, 0);"
    for name, given, target in (("k", key, caches[0]), ("v", value, caches[1])):
        turned = f"KERNEL_turn(to, own, cosines, sines, {position}, longest, half, size)"
        plain = "memcpy(to, own, (size_t)size * 4)"
        text = f"""
for (int64_t item = first; item < last; item++) {{
const int64_t t = item % room, pair = item / room, b = pair / {groups}, head = pair % {groups};
{start}
if (start + length > room || fill[b] < 0 || fill[b] >= room) {{ hg_fail(thread, fill[b]); return; }}
float *to = cache + item * size;
const int64_t s = t - start;
if (s >= 0 && s < length) {{
const float *own = x + (b * length + s) * {name}_row + {name}_first + head * size;
{f"if (!{turned}) {{ hg_fail(thread, start + s); return; }}" if turning and name == "k" else f"{plain};"}
}} {"else if (t < before) memcpy(to, past + (pair * before + t) * size, (size_t)size * 4);" if past else ""}
else memset(to, 0, (size_t)size * 4);
}}"""
        more = {"past": past[name == "v"]} if past else {}
        emit_written(
            low.recorder, node, text,
            reads={"x": given, **reads, **more, **(turning if name == "k" else {})},
            writes={"cache": target}, sizes=sizes, items=batch * groups * room, each=size,
            cost=0.2, helper=turn if name == "k" else "", name=f"cache_{name}",
        )  # fmt: skip
    y = low.forms.result(node.outputs[0])
    _attend(low, node, y, query, caches, share, sizes, {**reads, **turning}, turn, position)
    for index, cache in zip((1, 2), caches, strict=True):
        if _given(node, index):
            low.forms[node.outputs[index]] = cache
    low.forms[node.outputs[0]] = y


def _given(node: ir.Node, index: int) -> bool:
    return len(node.outputs) > index and bool(node.outputs[index].name)


def _room(low: Lowering, node: ir.Node) -> tuple[Dim, tuple[Tensor, ...]]:
    """Return how many keys caches hold after the call, and the caches before it, if any."""
    past: tuple[Tensor, ...] = ()
    if node.inputs[3] is not None and node.inputs[4] is not None:
        past = low.forms.contiguous(node.inputs[3]), low.forms.contiguous(node.inputs[4])
    if _given(node, 1):
        room = low.facts.shape(node.outputs[1])[2]
    elif _given(node, 2):
        room = low.facts.shape(node.outputs[2])[2]
    else:
        room = new_size(low, node.outputs[0], "keys")
    found_numbers(
        low, node, "found[0] = hg_max((int64_t)total[0], before);", [room],
        reads={"total": whole_numbers(low, node.inputs[6])},
        sizes={"before": past[0].shape[2] if past else 0},
    )  # fmt: skip
    return room, past


def _cache(low: Lowering, node: ir.Node, index: int, shape: tuple[Dim, ...]) -> Tensor:
    """Return the memory of the keys or values after the call."""
    if _given(node, index):
        return low.forms.result(node.outputs[index])
    return low.recorder.new(
        f"{node.outputs[0].name} cache {index}", low.facts.dtype(node.inputs[0]), shape
    )


def _attend(
    low: Lowering,
    node: ir.Node,
    y: Tensor,
    query: Tensor,
    caches: list[Tensor],
    share: int,
    sizes: dict[str, Dim],
    reads: dict[str, Tensor],
    turn: str,
    position: str,
) -> None:
    """Write the kernel in which some queries of all heads that share keys meet these."""
    attributes = low.facts.attributes(node)
    heads, groups = int(attributes["num_heads"]), int(attributes["kv_num_heads"])
    length, size, room = sizes["length"], sizes["size"], sizes["room"]
    several = max(1, _ROWS // share)
    window = int(attributes["local_window_size"])
    cap = float(attributes["softcap"])
    more, fits = "", ""
    if cap:
        more += f"s = v_tanh(s * {float_text(1 / cap)}) * {float_text(cap)};\n"
    bias = number_input(low, node, 10)
    if bias is not None:
        added = low.forms.contiguous(bias)
        reads["bias"] = added
        names = ("bias_batch", "bias_heads", "bias_rows", "bias_keys")
        sizes |= dict(zip(names, added.shape, strict=True))
        # (Its sizes may broadcast; keys cannot.)
        fits = (
            "".join(
                f"if (bias_{axis} != 1 && bias_{axis} != {size}) {{ hg_fail(thread, b); return; }}\n"
                for axis, size in (("batch", "batch"), ("heads", heads), ("rows", "length"))
            )
            + "if (bias_keys < start + length) { hg_fail(thread, b); return; }"
        )
        sizes["batch"] = query.shape[0]
        more += (
            "s += v_load_n(bias + ((hg_min(b, bias_batch - 1) * bias_heads + hg_min(head, bias_heads - 1))"
            " * bias_rows + hg_min(at, bias_rows - 1)) * bias_keys + t, n);"
        )
    sink, rest = "", ""
    given = number_input(low, node, 11)
    if given is not None:
        reads["sinks"] = low.forms.contiguous(given)
        sink = "const float apart = sinks[head]; most = apart > most ? apart : most;"
    elif attributes["smooth_softmax"] > 0:
        sink = "const float apart = 0; most = apart > most ? apart : most;"
    if sink:
        rest = " + expf(apart - most)"
    scale = float(attributes["scale"])
    factor = float_text(scale) if scale else "(float)(1 / sqrt((double)size))"
    lowest = f"hg_max(0, start + at + 1 - {window})" if window > 0 else "0"
    own = "query + (b * length + s) * q_row + head * size"
    take = "memcpy(to, own, (size_t)size * 4);"
    if turn:
        take = (
            f"if (!KERNEL_turn(to, own, cosines, sines, {position}, longest, half, size)) "
            "{ hg_fail(thread, s); return; }"
        )
    softmax = _SOFTMAX.format(scale=factor, more=more, sink=sink, rest=rest)
    text = f"""
const float ones[] = {{{", ".join(["1"] * low.facts.level.lanes)}}};
const int64_t pieces = (length + {several - 1}) / {several}, piece = q % pieces, pair = q / pieces;
const int64_t b = pair / {groups}, group = pair % {groups};
const int64_t first = piece * {several}, count = hg_min({several}, length - first), rows = count * {share};
const int64_t start = hg_max((int64_t)fill[b] + 1 - length, 0);
if (start + length > room) {{ hg_fail(thread, fill[b]); return; }}
{fits}
float *own_rows = (float *)thread->scratch, *scores = own_rows + rows * size, *sums = scores + rows * room;
const float *k = keys + pair * room * size, *v = values + pair * room * size;
for (int64_t r = 0; r < rows; r++) {{
const int64_t s = first + r / {share}, head = group * {share} + r % {share};
const float *own = {own}; float *to = own_rows + r * size;
{take} }}
int64_t at = first;
const int64_t from = {lowest}, end = start + first + count;
KERNEL_all_scores(own_rows, k, scores, size, room, rows, from, end);
for (int64_t r = 0; r < rows; r++) {{
at = first + r / {share};
const int64_t head = group * {share} + r % {share}, low = {lowest}, high = start + at + 1;
float *x = scores + r * room; (void)head;
{softmax} }}
KERNEL_all_sums(scores, v, sums, size, room, rows, from, end);
for (int64_t r = 0; r < rows; r++)
memcpy(y + ((b * length + first + r / {share}) * {heads} + group * {share} + r % {share}) * size, sums + r * size, (size_t)size * 4);
"""
    emit_written(
        low.recorder, node, text,
        reads={"query": query, "keys": caches[0], "values": caches[1], **reads},
        writes={"y": y}, sizes=sizes,
        tasks=query.shape[0] * groups * ceildiv(length, several),
        work=work_of(query.shape[0] * length * room * size, 4.0 * heads / _FLOPS_PER_NS),
        scratch=4 * several * share * (2 * size + room), helper=turn + _PRODUCTS, name="group_query_attention",
    )  # fmt: skip


RULES: dict[tuple[str, str], Rule] = {
    ("com.microsoft", "GroupQueryAttention"): lower_group_query_attention
}
