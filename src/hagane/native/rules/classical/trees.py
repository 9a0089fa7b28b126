"""Forests: all rows of a block walk down some trees together.

A node is 16 bytes: a threshold, a feature with the kind of comparison, and two children. A leaf is a
node that leads to itself, so that eight walks, of one row down eight trees, take one step after the
other without a branch, each waiting only for its own loads. Eight trees stay in the nearest cache
while the rows of a block pass by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.classical.scores import (
    features,
    labels,
    number_of_features,
    one_score,
    table,
    transform,
)
from hagane.ops.definition import Array
from hagane.ops.ml.classes import of_regression
from hagane.ops.ml.tree import Forest
from hagane.ops.ml.tree import ensemble_of as read_ensemble
from hagane.ops.ml.tree import forest_of as read_forest
from hagane.symbolic import ceildiv

# Walks that go on together, and rows of one task.
_WALKS, _ROWS = 8, 64
# Steps after which walks are compared with where they were.
_STEPS = 4
_LEAF, _MEMBER = 7, 6
_HOLDS = ("x <= v", "x < v", "x >= v", "x > v", "x == v", "x != v")
# Of each the same without a jump: whether less (1), equal (2) and greater (4) hold, or (8) do not.
_SIGNS = np.array([3, 1, 6, 4, 2, 10])


def _depths(forest: Forest) -> Array:
    """Return how many steps each tree takes at most."""
    at, depth = forest.roots.copy(), np.zeros(len(forest.roots), np.int64)
    level: list[Array] = [np.array([root]) for root in at]
    for tree, nodes in enumerate(level):
        steps = 0
        while True:
            nodes = nodes[forest.mode[nodes] != _LEAF]
            if not len(nodes):
                break
            steps += 1
            if steps > len(forest.mode):
                raise NotNative("a tree's nodes form a cycle")
            nodes = np.unique(np.concatenate([forest.true[nodes], forest.false[nodes]]))
        depth[tree] = steps
    return depth


def forest_of(
    attributes: dict[str, Any], what: str
) -> tuple[Forest, Array, Array, Array, Array | None]:
    """Return the forest that ``ops/ml/tree.py`` reads; the reference names faults."""
    try:
        return read_forest(attributes, what)
    except (ValueError, KeyError) as error:
        raise NotNative(f"a forest that is none: {error}") from None


def ensemble_of(attributes: dict[str, Any]) -> tuple[Forest, Array, Array, Array, str, str]:
    """Return the forest that ``ops/ml/tree.py`` reads; the reference names faults."""
    try:
        return read_ensemble(attributes)
    except (ValueError, KeyError, IndexError) as error:
        raise NotNative(f"a forest that is none: {error}") from None


class _Trees:
    """A forest as tables, and the C that walks down it."""

    def __init__(
        self,
        low: Lowering,
        node: ir.Node,
        forest: Forest,
        nodes: Array,
        targets: Array,
        weights: Array,
    ):
        count = len(forest.mode)
        if count >= 2**31 or (forest.feature >= 2**24).any():
            raise NotNative("more nodes or features than a node holds")
        if min(forest.feature.min(initial=0), targets.min(initial=0)) < 0:
            raise NotNative("features or targets counted from the end")
        self.wide = forest.value.dtype == np.float64
        depths = _depths(forest)
        order = np.argsort(depths, kind="stable")
        # Whole groups of trees, then the rest.
        whole = len(order) // _WALKS * _WALKS
        self.rest = len(order) - whole
        depth = [int(group.max()) for group in depths[order[:whole]].reshape(-1, _WALKS)]
        self.rest_depth = int(depths[order[whole:]].max(initial=0))
        own = np.arange(count)
        leaf = forest.mode == _LEAF
        true, false = (np.where(leaf, own, side) for side in (forest.true, forest.false))
        modes = set(np.unique(forest.mode[~leaf]).tolist())
        self.mode = modes.pop() if len(modes) == 1 else None if modes else 0
        self.has_members = _MEMBER in modes or self.mode == _MEMBER
        self.misses = bool((forest.missing_true & ~leaf).any())
        mode = forest.mode
        if self.mode is None and not self.has_members:
            mode = np.where(leaf, 0, _SIGNS[np.where(leaf, 0, mode)])
        packed = forest.feature | mode << 24 | forest.missing_true.astype(np.int64) << 28
        packed = np.where(leaf, 0, packed)
        record = np.zeros((count + 1, 3 if self.wide else 4), np.int64 if self.wide else np.int32)
        value = np.where(leaf, 0, forest.value)
        members: list[float] = []
        for at, found in forest.members.items():
            value[at] = len(members)
            members += [*found.tolist(), np.nan]
        children = np.stack([true, false], axis=1).astype(np.int32)
        if self.wide:
            record[:-1, 0] = value.astype(np.float64).view(np.int64)
            record[:-1, 1] = packed
            record[:-1, 2] = np.ascontiguousarray(children).view(np.int64)[:, 0]
            record[-1, 2] = np.array([count, count], np.int32).view(np.int64)[0]
        else:
            record[:-1, 0] = value.astype(np.float32).view(np.int32)
            record[:-1, 1] = packed
            record[:-1, 2:] = children
            record[-1, 2:] = count
        # Weights of each leaf: from starts[leaf] up to starts[leaf + 1].
        by_leaf = np.argsort(nodes, kind="stable")
        starts = np.searchsorted(nodes[by_leaf], np.arange(count + 2))
        found, counts = np.unique(nodes, return_counts=True)
        # Whether each leaf has a weight for each target, in order.
        width = int(targets.max(initial=0)) + 1
        self.dense = (
            len(found) == int(leaf.sum())
            and bool((counts == width).all())
            and bool((targets[by_leaf] == np.tile(np.arange(width), len(found))).all())
        ) * width
        self.tables = {
            "nodes": table(low, node, "nodes", record),
            "roots": table(low, node, "roots", forest.roots[order].astype(np.int32)),
            "depths": table(low, node, "depths", np.array(depth or [0], np.int32)),
            "starts": table(low, node, "starts", starts.astype(np.int32)),
            "targets": table(low, node, "targets", targets[by_leaf].astype(np.int32)),
            "weights": table(low, node, "weights", weights[by_leaf].astype(np.float64)),
            "members": table(low, node, "members", np.array(members or [0.0])),
        }
        self.groups, self.trees = len(depth), len(order)

    def declarations(self) -> str:
        """Return the C type of a node and the function that takes a step."""
        number = "double" if self.wide else "float"
        kinds = "int64_t packed;" if self.wide else "int32_t packed;"
        cases = ""
        if self.mode is not None and not self.has_members:
            holds = _HOLDS[self.mode]
        elif not self.has_members:
            holds = "(((x < v) | (x == v) << 1 | (x > v) << 2) & n->packed >> 24 & 7) != 0 ^ (n->packed >> 27 & 1)"
        else:
            cases = " ".join(f"case {i}: return {text};" for i, text in enumerate(_HOLDS))
            holds = "KERNEL_compare(x, v, n->packed >> 24 & 15, members)"
        helper = f"typedef struct {{ {number} value; {kinds} int32_t child[2]; }} KERNEL_node;\n"
        if self.has_members:
            helper += f"""
static int KERNEL_compare(double x, double v, int mode, const double *members) {{
switch (mode) {{ {cases}
case {_MEMBER}: for (const double *m = members + (int64_t)v; *m == *m; m++) if (*m == x) return 1; return 0;
default: return 0; }} }}
"""
        # Without branches: which way a row goes is not to be foretold.
        missing = " | ((x != x) & (n->packed >> 28))" if self.misses else ""
        return (
            helper
            + f"""
INLINE int32_t KERNEL_step(const KERNEL_node *nodes, int32_t at, const X *row, const double *members) {{
(void)members;
const KERNEL_node *n = nodes + at;
N x = (N)row[n->packed & 0xffffff]; {number} v = n->value;
return n->child[!(({holds}){missing} & 1)]; }}"""
        )

    def walk(self, action: str) -> str:
        """Return C that does an action for each ``row`` and each ``leaf`` that it reaches."""
        groups = f"""
for (int64_t g = 0; g < {self.groups}; g++)
for (int64_t row = 0; row < rows; row++) {{
{self._together(1, _WALKS, f"roots + g * {_WALKS}", "depths[g]", action)}
}}"""
        if not self.rest:
            return groups
        # Few trees go down with several rows at once.
        more = _WALKS // self.rest
        roots = f"roots + {self.groups * _WALKS}"
        texts = [
            self._together(count, self.rest, roots, str(self.rest_depth), action)
            for count in (more, 1)
        ]
        return f"""{groups if self.groups else ""}
int64_t done = 0;
for (; done + {more} <= rows; done += {more}) {{ int64_t row = done;
{texts[0]}
}}
for (; done < rows; done++) {{ int64_t row = done;
{texts[1]}
}}"""

    def _together(self, rows: int, trees: int, roots: str, depth: str, action: str) -> str:
        """Return C by which some rows from ``row`` on go down some trees together.

        They stop before the deepest leaf where all have come to theirs.
        """
        walks = rows * trees
        place = "from" if rows == 1 else f"from + i / {trees} * columns"
        step = f"KERNEL_step((const KERNEL_node *)nodes, at[i], {place}, members)"
        return f"""const X *from = x + (first + row) * columns;
int32_t at[{walks}], was[{walks}];
for (int i = 0; i < {walks}; i++) at[i] = ({roots})[i % {trees}];
for (int32_t d = {depth}; d > 0;) {{
for (int i = 0; i < {walks}; i++) was[i] = at[i];
for (int32_t end = hg_max(0, d - {_STEPS}); d > end; d--)
for (int i = 0; i < {walks}; i++) at[i] = {step};
int32_t moved = 0;
for (int i = 0; i < {walks}; i++) moved |= at[i] ^ was[i];
if (moved == 0) break; }}
const int64_t top = row;
for (int64_t row = top, w = 0; row < top + {rows}; row++)
for (int i = 0; i < {trees}; i++, w++) {{ int32_t leaf = at[w]; {action} }}"""


def _sum(targets: int, aggregate: str, *, dense: bool) -> tuple[str, str]:
    """Return C that begins the sums of a block, and that adds the weights of a leaf.

    Args:
        targets: How many sums a row has.
        aggregate: How weights of one target are put together.
        dense: Whether each leaf has a weight for each target.
    """
    total = f"rows * {targets}"
    if dense and aggregate not in ("MIN", "MAX"):
        begin = (
            f"double *hits = sums + {_ROWS * targets}; (void)hits;\n"
            f"for (int64_t i = 0; i < {total}; i++) sums[i] = 0, hits[i] = 1;"
        )
        add = (
            f"const double *own = weights + starts[leaf]; double *s = sums + row * {targets}; "
            f"for (int j = 0; j < {targets}; j++) s[j] += own[j];"
        )
        return begin, add
    if aggregate in ("MIN", "MAX"):
        start = "INFINITY" if aggregate == "MIN" else "-INFINITY"
        sign = "<" if aggregate == "MIN" else ">"
        begin = (
            f"double *hits = sums + {_ROWS * targets};\n"
            f"for (int64_t i = 0; i < {total}; i++) sums[i] = {start}, hits[i] = 0;"
        )
        add = (
            f"for (int32_t w = starts[leaf]; w < starts[leaf + 1]; w++) {{ "
            f"double *s = sums + row * {targets} + targets[w]; hits[s - sums] = 1; "
            f"if (weights[w] {sign} *s) *s = weights[w]; }}"
        )
        return begin, add
    begin = (
        f"double *hits = sums + {_ROWS * targets}; (void)hits;\n"
        f"for (int64_t i = 0; i < {total}; i++) sums[i] = 0, hits[i] = 0;"
    )
    hit = "hits[s - sums] = 1;" if aggregate == "CLASS" else ""
    add = (
        f"for (int32_t w = starts[leaf]; w < starts[leaf + 1]; w++) {{ "
        f"double *s = sums + row * {targets} + targets[w]; *s += weights[w]; {hit} }}"
    )
    return begin, add


def _widest(forest: Forest) -> int:
    inner = forest.mode != _LEAF
    return int(forest.feature[inner].max(initial=0)) + 1


def lower_regressor(low: Lowering, node: ir.Node) -> None:
    """Lower TreeEnsembleRegressor and TreeEnsemble."""
    attributes = low.facts.attributes(node)
    x = features(low, node.inputs[0])
    if node.op_type == "TreeEnsemble":
        forest, nodes, targets, weights, aggregate, name = ensemble_of(attributes)
        base: Array | None = None
    else:
        forest, nodes, targets, weights, base = forest_of(attributes, "target")
        aggregate = str(attributes.get("aggregate_function", "SUM"))
        name = str(attributes.get("post_transform", "NONE"))
    n = int(attributes.get("n_targets", 1))
    if targets.max(initial=0) >= n:
        raise NotNative(f"a weight of more than {n} targets")  # the reference names it
    name = of_regression(n, name)
    trees = _Trees(low, node, forest, nodes, targets, weights)
    begin, add = _sum(n, aggregate, dense=trees.dense == n)
    final = ""
    if aggregate == "AVERAGE":
        final = f"for (int64_t i = 0; i < rows * {n}; i++) sums[i] /= {len(forest.roots)};"
    elif aggregate in ("MIN", "MAX"):
        final = f"for (int64_t i = 0; i < rows * {n}; i++) sums[i] = hits[i] ? sums[i] : 0;"
    more = {}
    if base is not None and base.size:
        more["base"] = table(low, node, "base", np.broadcast_to(base, (n,)).astype(np.float64))
        final += f"\nfor (int64_t i = 0; i < rows * {n}; i++) sums[i] += base[i % {n}];"
    y = low.forms.result(node.outputs[0])
    text = f"""
{begin}
{trees.walk(add)}
{final}
for (int64_t row = 0; row < rows; row++) {{
double *s = sums + row * {n};
KERNEL_transform(s, {n});
for (int64_t j = 0; j < {n}; j++) y[(first + row) * {n} + j] = s[j]; }}"""
    _emit(low, node, trees, x, text, n, {"y": y}, more, name, forest)
    low.forms[node.outputs[0]] = y


def _emit(
    low: Lowering, node: ir.Node, trees: _Trees, x: Tensor, text: str, targets: int,
    writes: dict[str, Tensor], more: dict[str, Tensor], name: str, forest: Forest,
) -> None:  # fmt: skip
    helper = trees.declarations() + "\n" + transform(name)
    kind, number = c_type(x.dtype), number_of_features(x)
    helper = helper.replace("const X *", f"const {kind} *").replace(
        "N x = (N)", f"{number} x = ({number})"
    )
    head = f"""
int64_t first = q * {_ROWS}, rows = hg_min({_ROWS}, all_rows - first);
double *sums = (double *)thread->scratch;
if (columns < {_widest(forest)}) {{ hg_fail(thread, columns); return; }}"""
    rows = x.shape[0]
    known = min(rows, _ROWS) if isinstance(rows, int) else _ROWS
    emit_written(
        low.recorder, node, head + text,
        reads={"x": x, **trees.tables, **more}, writes=writes,
        sizes={"all_rows": rows, "columns": x.shape[1]}, types={"X": kind},
        tasks=ceildiv(rows, _ROWS), cost=trees.trees * 10.0 * known, helper=helper,
        scratch=_ROWS * targets * 16 + 64,
    )  # fmt: skip


def lower_classifier(low: Lowering, node: ir.Node) -> None:
    """Lower TreeEnsembleClassifier with labels that are numbers."""
    attributes: dict[str, Any] = low.facts.attributes(node)
    x = features(low, node.inputs[0])
    forest, nodes, ids, weights, base = forest_of(attributes, "class")
    name = str(attributes.get("post_transform", "NONE"))
    count = len(attributes.get("classlabels_int64s") or ())
    width = max(count, int(ids.max(initial=0)) + 1)
    known = labels(low, node, attributes, "classlabels_int64s", width)
    trees = _Trees(low, node, forest, nodes, ids, weights)
    binary = count == 2 and len(set(ids.tolist())) == 1
    begin, add = _sum(width, "CLASS", dense=trees.dense == width)
    more = {"labels": known}
    scores = low.forms.result(node.outputs[1])
    if scores.shape[1] != width and not binary:
        raise NotNative("more scores than classes")
    if binary:
        target = int(ids[0])
        share = bool(np.all(weights >= 0))
        alone = target == 0 and (base is None or base.size == 1)
        shift = 0.0
        whole = np.zeros(2)
        if base is not None and alone:
            shift = float(base.reshape(-1)[0])
        elif base is not None and base.size == 2:
            whole[target] = float(base[target])
        more["base"] = table(low, node, "base", np.array([shift, whole[0], whole[1]], np.float64))
        choose = f"""
for (int64_t j = 0; j < 2; j++) s[j] += {"base[0]" if alone else "base[1 + j]"};
int64_t best = (float)s[{target}] > {0.5 if share else 0};
{{ double score = s[0]; (void)score; {one_score(name, probability=share) if alone else "KERNEL_transform(s, 2);"} }}"""
    else:
        add_base = ""
        if base is not None:
            more["base"] = table(
                low, node, "base", np.broadcast_to(base, (width,)).astype(np.float64)
            )
            add_base = f"for (int64_t j = 0; j < {width}; j++) s[j] += base[j], hits[row * {width} + j] = 1;"
        choose = f"""
{add_base}
int64_t best = 0; float top = -INFINITY;
for (int64_t j = 0; j < {width}; j++)
if (hits[row * {width} + j] && (float)s[j] > top) best = j, top = (float)s[j];
KERNEL_transform(s, {width});"""
    chosen = low.forms.result(node.outputs[0])
    text = f"""
{begin}
{trees.walk(add)}
for (int64_t row = 0; row < rows; row++) {{
double *s = sums + row * {width};
{choose}
label[first + row] = labels[best];
for (int64_t j = 0; j < {width}; j++) y[(first + row) * {width} + j] = (float)s[j]; }}"""
    _emit(low, node, trees, x, text, width, {"label": chosen, "y": scores}, more, name, forest)
    low.forms[node.outputs[0]], low.forms[node.outputs[1]] = chosen, scores


RULES: dict[tuple[str, str], Rule] = {
    ("ai.onnx.ml", "TreeEnsemble"): lower_regressor,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): lower_classifier,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): lower_regressor,
}
