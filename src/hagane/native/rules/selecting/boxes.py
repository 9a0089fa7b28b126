"""NonMaxSuppression: boxes of each class by their scores, without overlaps of better ones."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import Place, find_sizes
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.native.rules.shaping.numbers import INT64

_CENTRED = """
float x = b[0], y = b[1], w = b[2], h = b[3];
c[0] = y - h / 2, c[1] = x - w / 2, c[2] = y + h / 2, c[3] = x + w / 2;"""
_CORNERS = """
c[0] = fminf(b[0], b[2]), c[1] = fminf(b[1], b[3]), c[2] = fmaxf(b[0], b[2]), c[3] = fmaxf(b[1], b[3]);"""
_KEY = """
/* A number that grows as a score falls; what is not a number comes last. */
INLINE uint64_t KERNEL_key(float score) {
union { float number; uint32_t bits; } u = {score + 0.f};
if (score != score) return 0xffffffff;
return u.bits & 0x80000000 ? u.bits : ~(u.bits | 0x80000000); }
"""
_LANES = 16


def lower_non_max_suppression(low: Lowering, node: ir.Node) -> None:
    """Lower NonMaxSuppression: each batch and class by itself, then all behind one another."""
    from hagane.native.rules.ordering.keys import SORT  # few models need it

    boxes, scores = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    if boxes.dtype.name != "float32" or scores.dtype.name != "float32":
        raise NotNative(f"boxes of type {boxes.dtype}")
    out = node.outputs[0]
    reads = {"boxes": boxes, "scores": scores}
    texts = ("0", "0.f", "-INFINITY")
    names = ("most", "allowed", "floor")
    for i, name in enumerate(names):
        value = number_input(low, node, 2 + i)
        if value is not None:
            reads[name] = low.forms.contiguous(value)
            if reads[name].size == 0:
                del reads[name]
    # A limit without elements is none.
    lengths = {f"{name}_n": reads[name].size for name in names if name in reads}
    given = [
        f"({name}_n ? {name}[0] : {text})" if name in reads else text
        for name, text in zip(names, texts, strict=True)
    ]
    batches, classes, n = scores.shape
    tasks = batches * classes
    # Indices of candidates and spare ones, then four corners and an area of each that is taken.
    order = low.recorder.new(f"{out.name} taken", INT64, (tasks, n))
    counts = low.recorder.new(f"{out.name} counts", INT64, (tasks,))
    total = low.recorder.new(f"{out.name} count", INT64, (1,))
    centred = low.facts.attributes(node)["center_point_box"]
    helper = f"""
INLINE void KERNEL_corners(const float *b, float *c) {{ {_CENTRED if centred else _CORNERS} }}
{SORT}
{_KEY}"""
    has_floor = "floor" in reads
    text = f"""
if (boxes_n != n || boxes_b != batches) {{ hg_fail(thread, n); return; }}
const float *b = boxes + q / classes * n * 4, *s = scores + q * n;
const float threshold = {given[1]}, least = {given[2]}; (void)least;
uint64_t *keys = (uint64_t *)thread->scratch, *spare = keys + n;
int64_t limit = {given[0]}, left = 0, count = 0;
float *t0 = (float *)(spare + n), *t1 = t0 + n + {_LANES}, *t2 = t1 + n + {_LANES};
float *t3 = t2 + n + {_LANES}, *areas = t3 + n + {_LANES};
int64_t *out = taken + q * n;
for (int64_t i = 0; i < n && limit > 0; i++) {"if (floor_n == 0 || s[i] > least) " if has_floor else ""}keys[left++] = KERNEL_key(s[i]) << 32 | (uint64_t)i;
const uint64_t *sorted = KERNEL_sort(keys, spare, left);
for (int64_t i = 0; i < left && count < limit; i++) {{
const int64_t box = (uint32_t)sorted[i];
float c[4]; KERNEL_corners(b + box * 4, c);
float area = (c[2] - c[0]) * (c[3] - c[1]);
int beaten = 0;
for (int64_t j = 0; j < count && !beaten; j += {_LANES}) {{
for (int64_t l = j; l < j + {_LANES}; l++) {{
float bottom = c[2] < t2[l] ? c[2] : t2[l], right = c[3] < t3[l] ? c[3] : t3[l];
float h = bottom - (c[0] > t0[l] ? c[0] : t0[l]), w = right - (c[1] > t1[l] ? c[1] : t1[l]);
float inner = (h > 0 ? h : 0) * (w > 0 ? w : 0), whole = areas[l] + area - inner;
float share = whole > 0 ? inner / whole : 0;
beaten |= (l < count) & !(share <= threshold);
}} }}
if (beaten) continue;
t0[count] = c[0], t1[count] = c[1], t2[count] = c[2], t3[count] = c[3], areas[count] = area;
out[count++] = box;
}}
counts[q] = count;"""
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"taken": order, "counts": counts},
        sizes={"n": n, "classes": classes, "batches": batches, "boxes_n": boxes.shape[1],
               "boxes_b": boxes.shape[0], **lengths},
        tasks=tasks, cost=20000.0, helper=helper, scratch=n * 36 + _LANES * 20 + 64,
    )  # fmt: skip
    emit_written(
        low.recorder, node,
        """
int64_t sum = 0;
for (int64_t i = 0; i < n; i++) { int64_t c = counts[i]; counts[i] = sum; sum += c; }
total[0] = sum;""",
        reads={}, writes={"counts": counts, "total": total}, sizes={"n": tasks}, tasks=1,
    )  # fmt: skip
    size = low.facts.shape(out)[0]
    find_sizes(low, node, [(size, Place(total, 0))])
    y = low.forms.result(out)
    emit_written(
        low.recorder, node,
        """
for (int64_t row = first; row < last; row++) {
int64_t end = row + 1 < all ? counts[row + 1] : total;
for (int64_t i = counts[row]; i < end; i++) {
y[i * 3] = row / classes; y[i * 3 + 1] = row % classes;
y[i * 3 + 2] = taken[row * n + i - counts[row]];
} }""",
        reads={"taken": order, "counts": counts}, writes={"y": y},
        sizes={"n": n, "classes": classes, "all": tasks, "total": size}, items=tasks,
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {("", "NonMaxSuppression"): lower_non_max_suppression}
