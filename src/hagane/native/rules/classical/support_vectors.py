"""SVMClassifier, SVMRegressor: kernels of rows with all support vectors side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.classical.scores import features, labels, one_score, table, transform

# Sums of a row ``from`` and of all vectors, which lie a feature after the other; then what is made of them.
_SUMS = """
for (int64_t s = {begin}; s < {end}; s += {step}) {{{{
KERNEL_vector sum[{blocks}] = {{{{{{{{0}}}}}}}};
for (int64_t i = 0; i < {{columns}}; i++) {{{{
const double v = (double)from[i]; const double *restrict at = vectors + i * {{padded}} + s;
_Pragma("GCC unroll 4")
for (int j = 0; j < {blocks}; j++) {{{{ const KERNEL_vector own = *(const KERNEL_vector *)(at + 8 * j); {{product}} }}}} }}}}
_Pragma("GCC unroll 4")
for (int j = 0; j < {blocks}; j++) {{{{ {{keep}} }}}} }}}}"""
_TYPES = """
typedef double KERNEL_vector __attribute__((vector_size(64), aligned(8), may_alias));
typedef float KERNEL_floats __attribute__((vector_size(32), aligned(4), may_alias));
"""
# Fills the kernels ``k`` of a row with all vectors.
_KERNELS = """
static void KERNEL_values(double *restrict k, const {kind} *restrict from, const double *restrict vectors) {{
{sums}
{last} }}
static double KERNEL_dot(const double *restrict a, const double *restrict b, int64_t n) {{
double sums[8] = {{0}}, sum = 0;
int64_t i = 0;
for (; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) sums[j] += a[i + j] * b[i + j];
for (; i < n; i++) sum += a[i] * b[i];
for (int j = 0; j < 8; j++) sum += sums[j];
return sum; }}
"""
_KEEP = "*(KERNEL_vector *)(k + s + 8 * j) = sum[j];"
# The sum of a row's kernels by weights; ``k`` is room for numbers.
_TOTAL = """
static double KERNEL_total(float *restrict k, const {kind} *restrict from, const double *restrict vectors,
    const {weight} *restrict weights) {{
double sum_of_all = 0;
KERNEL_vector total[4] = {{{{0}}}};
(void)k;
{sums}
{last}
for (int j = 0; j < 4; j++) for (int i = 0; i < 8; i++) sum_of_all += total[j][i];
return sum_of_all; }}
"""
_ADD = "const KERNEL_vector t = {gamma} * sum[j] + {coefficient}; total[j] += {power} * *(const KERNEL_vector *)(weights + s + 8 * j);"
_NARROW = "*(KERNEL_floats *)(k + s + 8 * j) = __builtin_convertvector({gamma} * sum[j] + {coefficient}, KERNEL_floats);"
_ADD_TANH = """
for (int64_t s = {filled}; s < {room}; s++) k[s] = 0;
vf floats = v_set1(0.f);
for (int64_t s = 0; s < {room}; s += VL) {{
const vf e = v_exp(v_abs(v_load(k + s)) * 2.f);
floats = v_fma(v_copysign(1.f - 2.f / (e + 1.f), v_load(k + s)), v_load(weights + s), floats); }}
for (int i = 0; i < VL; i++) sum_of_all += floats[i];"""
# Vectors whose sums stand side by side, in so many vectors of the processor; floats of one of these.
_SIDE, _BLOCKS, _FLOATS = 8, 4, 16
# The function of each sum; that of vectors, of floats, is as exact as the result.
_EACH = "for (int64_t s = 0; s < {count}; s++) k[s] = {end};"
_TANH = """
for (int64_t s = 0; s < {padded}; s += VL) {{
float t[VL];
for (int64_t i = 0; i < VL; i++) t[i] = (float)({gamma} * k[s + i] + {coefficient});
v_store(t, v_tanh(v_load(t)));
for (int64_t i = 0; i < VL; i++) k[s + i] = t[i]; }}"""
# A feature's part, and the kernel of the sum ``k[s]``.
_KINDS = {
    "LINEAR": ("sum[j] += own * v;", "k[s]"),
    "POLY": ("sum[j] += own * v;", "pow({gamma} * k[s] + {coefficient}, {degree})"),
    "RBF": ("{{ const KERNEL_vector d = own - v; sum[j] += d * d; }}", "hg_exp(-({gamma}) * k[s])"),
    "SIGMOID": ("sum[j] += own * v;", ""),
}
# Powers that are products.
_POWERS = range(1, 7)
# Each pair of classes has C of its own, and tables of all pairs lie on the stack.
_MOST_CLASSES = 64
# Nanoseconds of the function of a sum.
_FUNCTION = 10
# Couples pairwise probabilities (Wu, Lin and Weng, 2004, second method): of margins ``m`` into ``p``.
_COUPLE = """
static void KERNEL_couple(const double *m, const double *a, const double *b, double *p) {{
enum {{ K = {classes} }};
double r[K][K], q[K][K], qp[K], pqp;
for (int i = 0, pair = 0; i < K; i++) {{ r[i][i] = 0;
for (int j = i + 1; j < K; j++, pair++) {{
double v = 1 / (1 + exp(m[pair] * a[pair] + b[pair]));
v = v < 1e-7 ? 1e-7 : v > 1 - 1e-7 ? 1 - 1e-7 : v;
r[i][j] = v, r[j][i] = 1 - v; }} }}
for (int i = 0; i < K; i++) {{ p[i] = 1. / K; q[i][i] = 0;
for (int j = 0; j < K; j++) if (j != i) q[i][j] = -r[j][i] * r[i][j], q[i][i] += r[j][i] * r[j][i]; }}
for (int turn = 0; turn < (K > 100 ? K : 100); turn++) {{
pqp = 0; double worst = 0;
for (int i = 0; i < K; i++) {{ qp[i] = 0;
for (int j = 0; j < K; j++) qp[i] += q[i][j] * p[j];
pqp += p[i] * qp[i]; }}
for (int i = 0; i < K; i++) worst = fabs(qp[i] - pqp) > worst ? fabs(qp[i] - pqp) : worst;
if (worst < 0.005 / K) break;
for (int t = 0; t < K; t++) {{
const double d = (pqp - qp[t]) / q[t][t];
p[t] += d;
pqp = (pqp + d * (d * q[t][t] + 2 * qp[t])) / (1 + d) / (1 + d);
for (int j = 0; j < K; j++) qp[j] = (qp[j] + d * q[t][j]) / (1 + d), p[j] /= 1 + d; }} }} }}
"""


def _values(
    low: Lowering, node: ir.Node, x: Tensor, vectors: np.ndarray
) -> tuple[dict[str, Tensor], str]:
    """Return the table of vectors, ``(vectors, features)``, and C of their kernels with a row."""
    attributes = low.facts.attributes(node)
    if x.shape[1] != vectors.shape[1]:
        raise NotNative("a number of features known only at run time")
    kind = str(attributes["kernel_type"])
    if kind not in _KINDS:
        raise NotNative(f"kernel_type '{kind}'")
    given = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    names = dict(
        zip(("gamma", "coefficient", "degree"), (float(v).hex() for v in given), strict=True)
    )
    names["padded"] = str(_floats_of(vectors))
    step, end = _KINDS[kind]
    if kind == "POLY" and given[2] in _POWERS:
        end = " * ".join(["({gamma} * k[s] + {coefficient})"] * int(given[2]))
    names["count"] = str(len(vectors))
    step, end = (text.format(**names) for text in (step, end))
    last = _EACH.format(end=end, **names) if end else _TANH.format(**names)
    kernels = _TYPES + _KERNELS.format(
        kind=c_type(x.dtype), last=last, sums=_sums(vectors, step, _KEEP)
    )
    return {"vectors": _across(low, node, vectors)}, kernels


def _total(
    low: Lowering, node: ir.Node, x: Tensor, vectors: np.ndarray, weights: np.ndarray
) -> tuple[dict[str, Tensor], str] | None:
    """Return the tables and C of the sum of a row's kernels, where it needs them in no memory."""
    attributes = low.facts.attributes(node)
    gamma, coefficient, degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    names = {"gamma": float(gamma).hex(), "coefficient": float(coefficient).hex()}
    dtype: np.dtype[Any] = np.dtype(np.float64)
    last = ""
    if attributes["kernel_type"] == "POLY" and degree in _POWERS:
        keep = _ADD.format(power=" * ".join("t" * int(degree)), **names)
    elif attributes["kernel_type"] == "SIGMOID":
        dtype, keep = np.dtype(np.float32), _NARROW.format(**names)
        last = _ADD_TANH.format(filled=room_of(vectors), room=_floats_of(vectors))
    else:
        return None
    kernels = _TYPES + _TOTAL.format(
        kind=c_type(x.dtype), weight=c_type(dtype), last=last,
        sums=_sums(vectors, _KINDS["POLY"][0], keep),
    )  # fmt: skip
    filled = np.zeros(_floats_of(vectors), dtype)
    filled[: len(weights)] = weights
    reads = {
        "weights": table(low, node, "weights", filled), "vectors": _across(low, node, vectors),
    }  # fmt: skip
    return reads, kernels


def _sums(vectors: np.ndarray, product: str, keep: str) -> str:
    """Return C of the sums of a row with all vectors, several side by side."""
    room, columns = room_of(vectors), vectors.shape[1]
    whole = room - room % (_SIDE * _BLOCKS)
    parts = [(0, whole, _BLOCKS), (whole, room, (room - whole) // _SIDE)]
    return "".join(
        _SUMS.format(begin=begin, end=end, step=_SIDE * blocks, blocks=blocks).format(
            columns=columns, padded=room, product=product, keep=keep
        )
        for begin, end, blocks in parts
        if begin < end
    )


def _across(low: Lowering, node: ir.Node, vectors: np.ndarray) -> Tensor:
    """Return the table of vectors, a feature after the other."""
    more = room_of(vectors) - len(vectors)
    across = np.ascontiguousarray(np.pad(vectors, ((0, more), (0, 0))).T)
    return table(low, node, "vectors", across)


def _floats_of(vectors: np.ndarray) -> int:
    """Return how many floats the kernels of a row take."""
    return -(-len(vectors) // _FLOATS) * _FLOATS


def room_of(vectors: np.ndarray) -> int:
    """Return how many numbers the kernels of a row with all vectors take."""
    return -(-len(vectors) // _SIDE) * _SIDE


def _cost(vectors: np.ndarray) -> int:
    count, columns = vectors.shape
    return int(count) * (int(columns) + _FUNCTION)


def lower_regressor(low: Lowering, node: ir.Node) -> None:
    """Lower SVMRegressor."""
    attributes = low.facts.attributes(node)
    x, y = features(low, node.inputs[0]), low.forms.result(node.outputs[0])
    weights = np.asarray(attributes["coefficients"], np.float64)
    count = int(attributes.get("n_supports") or 0)
    if count:
        vectors = np.asarray(attributes["support_vectors"], np.float64).reshape(count, -1)
    else:
        vectors, weights = weights.reshape(1, -1), np.ones(1)
    if attributes["kernel_type"] == "LINEAR" and len(weights) == len(vectors):
        vectors, weights = (weights @ vectors)[None], np.ones(1)
    if len(weights) != len(vectors):
        raise NotNative("another number of coefficients than of support vectors")
    total = _total(low, node, x, vectors, weights)
    sums = f"KERNEL_total((float *)k, x + row * {vectors.shape[1]}, vectors, weights)"
    if total is None:
        reads, helper = _values(low, node, x, vectors)
        reads["weights"] = table(low, node, "weights", weights)
        sums = f"(KERNEL_values(k, x + row * {vectors.shape[1]}, vectors), KERNEL_dot(k, weights, {len(vectors)}))"
    else:
        reads, helper = total
    end = "y[row] = (float)s[0];"
    if attributes.get("one_class"):
        end = "y[row] = s[0] > 0 ? 1 : -1;"
    emit_written(
        low.recorder, node,
        f"""
double *k = (double *)thread->scratch;
for (int64_t row = first; row < last; row++) {{
double s[1] = {{{sums} + {float(attributes["rho"][0]).hex()}}};
{end} }}""",
        reads={"x": x, **reads}, writes={"y": y},
        items=x.shape[0], each=_cost(vectors), scratch=8 * _floats_of(vectors),
        helper=helper,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _margins(counts: Sequence[int], rho: Sequence[float]) -> str:
    """Return C of the margins ``m`` of each pair of classes, as libsvm orders them."""
    total, lines, pair = sum(counts), [], 0
    starts = [sum(counts[:i]) for i in range(len(counts) + 1)]
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            terms = [(starts[i], starts[i + 1], j - 1), (starts[j], starts[j + 1], i)]
            lines.append(f"m[{pair}] = 0;")
            lines += [
                f"m[{pair}] += KERNEL_dot(k + {start}, weights + {row * total + start}, {end - start});"
                for start, end, row in terms
            ]
            lines.append(f"m[{pair}] += {float(rho[pair]).hex()};")
            lines.append(f"votes[m[{pair}] > 0 ? {i} : {j}]++;")
            pair += 1
    return "\n".join(lines)


def lower_classifier(low: Lowering, node: ir.Node) -> None:
    """Lower SVMClassifier with labels that are numbers."""
    attributes = low.facts.attributes(node)
    x, count = features(low, node.inputs[0]), len(attributes.get("classlabels_ints") or ())
    if not count:
        raise NotNative("labels that are text")
    if count > _MOST_CLASSES and attributes.get("vectors_per_class"):
        raise NotNative(f"more than {_MOST_CLASSES} classes")
    reads = {"labels": labels(low, node, attributes, "classlabels_ints", count)}
    counts = [int(n) for n in attributes.get("vectors_per_class") or ()]
    name = str(attributes.get("post_transform", "NONE"))
    coefficients = np.asarray(attributes["coefficients"], np.float64)
    best = "int64_t best = 0; for (int64_t j = 1; j < {0}; j++) if ({1}[j] > {1}[best]) best = j;"
    couple = ""
    if not counts:
        vectors, width = coefficients.reshape(count, -1), count
        rho = float(attributes["rho"][0]).hex()
        text = f"for (int64_t j = 0; j < {count}; j++) s[j] = k[j] + {rho};\n" + best.format(
            count, "s"
        )
        text += f"\nKERNEL_transform(s, {count});"
    else:
        if len(counts) != count:
            raise NotNative("another number of classes than of labels")
        vectors = np.asarray(attributes["support_vectors"], np.float64).reshape(sum(counts), -1)
        reads["weights"] = table(low, node, "weights", coefficients)
        pairs = count * (count - 1) // 2
        text = f"double m[{max(pairs, 1)}]; int64_t votes[{count}] = {{0}};\n"
        text += _margins(counts, attributes["rho"]) + "\n" + best.format(count, "votes")
        text, width, couple = _scored(low, node, attributes, name, text, reads)
    chosen, y = (low.forms.result(value) for value in node.outputs)
    if y.shape[1] != width:
        raise NotNative("another number of scores than of classes")
    table_of, helper = _values(low, node, x, vectors)
    emit_written(
        low.recorder, node,
        f"""
double *k = (double *)thread->scratch;
for (int64_t row = first; row < last; row++) {{
double s[{width}];
KERNEL_values(k, x + row * {vectors.shape[1]}, vectors);
{text}
label[row] = labels[best];
for (int64_t j = 0; j < {width}; j++) y[row * {width} + j] = (float)s[j]; }}""",
        reads={"x": x, **reads, **table_of}, writes={"label": chosen, "y": y},
        items=x.shape[0], each=_cost(vectors), scratch=8 * _floats_of(vectors),
        helper=helper + transform(name) + couple,
    )  # fmt: skip
    low.forms[node.outputs[0]], low.forms[node.outputs[1]] = chosen, y


def _scored(
    low: Lowering,
    node: ir.Node,
    attributes: Mapping[str, Any],
    name: str,
    text: str,
    reads: dict[str, Tensor],
) -> tuple[str, int, str]:
    """Return C that ends with the scores of margins, how many there are, and functions for it."""
    count = len(attributes["classlabels_ints"])
    pairs = count * (count - 1) // 2
    prob_a = attributes.get("prob_a")
    if count == 2 and not prob_a:
        score = one_score(name, probability=name != "NONE")
        return f"{text}\nconst double score = m[0]; {score}", 2, ""
    if not prob_a:
        copied = f"for (int64_t j = 0; j < {pairs}; j++) s[j] = m[j];"
        return f"{text}\n{copied} KERNEL_transform(s, {pairs});", pairs, ""
    for key in ("prob_a", "prob_b"):
        given = np.asarray(attributes.get(key) or (), np.float64)
        if len(given) != pairs:
            raise NotNative(f"another number of '{key}' than of pairs of classes")
        reads[key] = table(low, node, key, given)
    text += f"\nKERNEL_couple(m, prob_a, prob_b, s); KERNEL_transform(s, {count});"
    return text, count, _COUPLE.format(classes=count)


RULES: dict[tuple[str, str], Rule] = {
    ("ai.onnx.ml", "SVMClassifier"): lower_classifier,
    ("ai.onnx.ml", "SVMRegressor"): lower_regressor,
}
