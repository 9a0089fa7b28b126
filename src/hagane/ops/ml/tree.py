"""TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.

All three forms become one table of nodes; every row of the input walks down every tree at once,
one level a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml import classes
from hagane.ops.ml.classes import DOMAIN, as_matrix, infer_classifier, labels_of
from hagane.ops.vjp import flat

_LEAF = 7
_MODES = {
    "BRANCH_LEQ": 0,
    "BRANCH_LT": 1,
    "BRANCH_GTE": 2,
    "BRANCH_GT": 3,
    "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5,
    "BRANCH_MEMBER": 6,
    "LEAF": _LEAF,
}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes of all trees in one table.

    Attributes:
        feature: Column that a node looks at.
        mode: How it compares, by number; ``_LEAF`` for leaves.
        value: The number that it compares with.
        true: Node to go to when the comparison holds; a leaf points at itself.
        false: Node to go to otherwise.
        missing_true: Whether NaN counts as holding.
        roots: First node of each tree.
        members: For set membership, the set of a node.
    """

    feature: Array
    mode: Array
    value: Array
    true: Array
    false: Array
    missing_true: Array
    roots: Array
    members: dict[int, Array]

    def leaves(self, x: Array) -> Array:
        """Return the leaf that each row reaches in each tree, (rows, trees)."""
        at = np.broadcast_to(self.roots, (len(x), len(self.roots))).copy()
        rows = np.arange(len(x))[:, None]
        # A path longer than the number of nodes can only be a cycle.
        for _ in range(len(self.mode) + 1):
            if np.all(self.mode[at] == _LEAF):
                return at
            holds = self._holds(x[rows, self.feature[at]], at)
            at = np.where(holds, self.true[at], self.false[at])
        raise ValueError("a tree's nodes form a cycle")

    def _holds(self, x: Array, at: Array) -> Array:
        value, mode = self.value[at], self.mode[at]
        holds = np.select(
            [mode == 0, mode == 1, mode == 2, mode == 3, mode == 4, mode == 5],
            [x <= value, x < value, x >= value, x > value, x == value, x != value],
            default=False,
        )
        for node in np.unique(at[mode == 6]):
            here = at == node
            holds[here] = np.isin(x[here], self.members[int(node)])
        return holds | (np.isnan(x) & self.missing_true[at])


def _forest_by_ids(
    falsenodeids: Sequence[int],
    featureids: Sequence[int],
    missing: Sequence[int] | None,
    modes: Sequence[str],
    nodeids: Sequence[int],
    treeids: Sequence[int],
    truenodeids: Sequence[int],
    values: Array,
) -> tuple[Forest, dict[tuple[int, int], int]]:
    """Return the forest of the older operators, and where each (tree, node) pair stands."""
    position = {pair: i for i, pair in enumerate(zip(treeids, nodeids, strict=True))}
    mode = np.array([_MODES[name] for name in modes], dtype=np.int64)
    own = np.arange(len(mode))

    def targets(ids: Sequence[int]) -> Array:
        found = [
            i if mode[i] == _LEAF else position[tree, target]
            for i, (tree, target) in enumerate(zip(treeids, ids, strict=True))
        ]
        return np.array(found, dtype=np.int64)

    true, false = targets(truenodeids), targets(falsenodeids)
    inner = mode != _LEAF
    has_parent = np.zeros(len(mode), dtype=bool)
    has_parent[true[inner]] = True
    has_parent[false[inner]] = True
    features = np.asarray(featureids)
    if (features[inner] < 0).any():
        raise ValueError(
            f"expected features from 0 on in nodes_featureids, got {features[inner].min()}"
        )
    trees = np.asarray(treeids)
    for tree in np.unique(trees):
        roots = np.flatnonzero(~has_parent & (trees == tree))
        alone = np.count_nonzero(trees == tree) == 1
        if len(roots) != 1 or not (alone or inner[roots[0]]):
            raise ValueError(f"tree {tree} has no single root: its nodes form a cycle or two trees")
    forest = Forest(
        np.array(featureids, dtype=np.int64),
        mode,
        values,
        true,
        false,
        np.array(missing or np.zeros(len(mode)), dtype=bool),
        own[~has_parent],
        {},
    )
    return forest, position


def _sums(
    leaves: Array,
    nodes: Array,
    targets: Array,
    weights: Array,
    n_nodes: int,
    n_targets: int,
    aggregate: str,
    n_trees: int,
) -> Array:
    """Fold the weights of all reached leaves, (rows, targets); 0 where none was reached."""
    start = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
    per_node = np.full((n_nodes, n_targets), start, dtype=weights.dtype)
    fold = {"MIN": np.minimum, "MAX": np.maximum}.get(aggregate, np.add)
    fold.at(per_node, (nodes, targets), weights)
    reached = per_node[leaves]
    if aggregate in ("MIN", "MAX"):
        hit = _scored(leaves, nodes, targets, n_nodes, n_targets)
        return np.where(hit, fold.reduce(reached, axis=1), 0).astype(weights.dtype)
    total = reached.sum(axis=1)
    return total / n_trees if aggregate == "AVERAGE" else total


def _scored(leaves: Array, nodes: Array, targets: Array, n_nodes: int, n_targets: int) -> Array:
    """Return which targets got a weight from any reached leaf, (rows, targets)."""
    touched = np.zeros((n_nodes, n_targets), dtype=bool)
    touched[nodes, targets] = True
    return np.asarray(touched[leaves].any(axis=1))


def _floats(plain: Sequence[float] | None, tensor: Array | None) -> Array:
    return np.asarray(plain if tensor is None else tensor).astype(
        np.float32 if tensor is None else tensor.dtype
    )


def _regressor(
    x: Array,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    n_targets: int,
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int],
    target_nodeids: Sequence[int],
    target_treeids: Sequence[int],
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: Array | None = None,
) -> Array:
    forest, position = _forest_by_ids(
        nodes_falsenodeids,
        nodes_featureids,
        nodes_missing_value_tracks_true,
        nodes_modes,
        nodes_nodeids,
        nodes_treeids,
        nodes_truenodeids,
        _floats(nodes_values, nodes_values_as_tensor),
    )
    nodes = [position[pair] for pair in zip(target_treeids, target_nodeids, strict=True)]
    scores = _sums(
        forest.leaves(as_matrix(x)),
        np.array(nodes),
        np.array(target_ids),
        _floats(target_weights, target_weights_as_tensor),
        len(forest.mode),
        n_targets,
        aggregate_function,
        len(forest.roots),
    )
    if base_values or base_values_as_tensor is not None:
        scores = scores + _floats(base_values, base_values_as_tensor)
    applied = classes.of_regression(n_targets, post_transform)
    return classes.post_transform(scores, applied).astype(np.float32)


def _classifier(
    x: Array,
    *,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    class_ids: Sequence[int],
    class_nodeids: Sequence[int],
    class_treeids: Sequence[int],
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: Array | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str],
    nodes_nodeids: Sequence[int],
    nodes_treeids: Sequence[int],
    nodes_truenodeids: Sequence[int],
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    forest, position = _forest_by_ids(
        nodes_falsenodeids,
        nodes_featureids,
        nodes_missing_value_tracks_true,
        nodes_modes,
        nodes_nodeids,
        nodes_treeids,
        nodes_truenodeids,
        _floats(nodes_values, nodes_values_as_tensor),
    )
    weights = _floats(class_weights, class_weights_as_tensor)
    n_classes = len(classlabels_strings or classlabels_int64s or ())
    nodes = np.array([position[p] for p in zip(class_treeids, class_nodeids, strict=True)])
    leaves, targets = forest.leaves(as_matrix(x)), np.array(class_ids)
    width = max(n_classes, max(class_ids) + 1)
    scores = _sums(
        leaves,
        nodes,
        targets,
        weights,
        len(forest.mode),
        width,
        "SUM",
        len(forest.roots),
    )
    base = None
    if base_values or base_values_as_tensor is not None:
        base = _floats(base_values, base_values_as_tensor)
    if n_classes == 2 and len(set(class_ids)) == 1:
        index, scores = _binary(scores, class_ids[0], base, weights, post_transform)
    else:
        # A class that no leaf spoke of is no candidate, for any scores of the others.
        spoken = _scored(leaves, nodes, targets, len(forest.mode), width)
        if base is not None:
            scores, spoken = scores + base, np.ones_like(spoken)
        index = np.where(spoken, scores, -np.inf).argmax(axis=1)
        scores = classes.post_transform(scores, post_transform)
    return labels_of(index, classlabels_int64s, classlabels_strings), scores.astype(np.float32)


def _binary(
    scores: Array, target: int, base: Array | None, weights: Array, transform: str
) -> tuple[Array, Array]:
    """Return class and both scores of two classes of which the trees score one.

    As ONNX Runtime does: if no weight is negative, the score is a probability, split at a half;
    otherwise it is a margin, split at zero. The other class gets a score of its own only where
    the trees score the first class and there is at most one base value.
    """
    share = bool(np.all(weights >= 0))
    alone = target == 0 and (base is None or base.size == 1)
    if base is not None and (alone or base.size == 2):
        scores = scores + (base if alone else np.where(np.arange(2) == target, base, 0))
    index = scores[:, target] > (0.5 if share else 0)
    if alone:
        pair = classes.one_score(scores[:, 0], transform, probability=share)
    else:
        pair = classes.post_transform(scores, transform)
    return index.astype(np.int64), pair


def _ensemble(
    x: Array,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    membership_values: Array | None = None,
    n_targets: int = 1,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Array:
    forest, own = _table(
        nodes_modes,
        nodes_splits,
        leaf_weights,
        nodes_truenodeids,
        nodes_trueleafs,
        nodes_falsenodeids,
        nodes_falseleafs,
        nodes_featureids,
        nodes_missing_value_tracks_true,
        tree_roots,
        membership_values,
    )
    scores = _sums(
        forest.leaves(x),
        own,
        np.array(leaf_targetids),
        leaf_weights,
        len(forest.mode),
        n_targets,
        _AGGREGATES[aggregate_function],
        len(tree_roots),
    )
    applied = classes.of_regression(n_targets, _TRANSFORMS[post_transform])
    return classes.post_transform(scores, applied).astype(x.dtype)


def _table(
    nodes_modes: Array,
    nodes_splits: Array,
    leaf_weights: Array,
    nodes_truenodeids: Sequence[int],
    nodes_trueleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_falseleafs: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_missing_value_tracks_true: Sequence[int] | None,
    tree_roots: Sequence[int],
    membership_values: Array | None,
) -> tuple[Forest, Array]:
    """Return the forest of the current operator, and where its leaves stand."""
    inner, leaf = len(nodes_modes), len(leaf_weights)
    # Leaves follow the inner nodes in one table; each points at itself.
    own = np.arange(inner, inner + leaf)

    def table(ids: Sequence[int], leaves: Sequence[int]) -> Array:
        targets = [inner + i if is_leaf else i for i, is_leaf in zip(ids, leaves, strict=True)]
        return np.concatenate([targets, own]).astype(np.int64)

    # A root whose two branches are one and the same leaf stands for a tree of that leaf alone.
    mode = np.concatenate([nodes_modes.astype(np.int64), np.full(leaf, _LEAF)])
    forest = Forest(
        np.concatenate([nodes_featureids, np.zeros(leaf)]).astype(np.int64),
        mode,
        np.concatenate([nodes_splits, np.zeros(leaf, nodes_splits.dtype)]),
        table(nodes_truenodeids, nodes_trueleafs),
        table(nodes_falsenodeids, nodes_falseleafs),
        np.concatenate([nodes_missing_value_tracks_true or np.zeros(inner), np.zeros(leaf)]).astype(
            bool
        ),
        np.array(tree_roots, dtype=np.int64),
        _members(mode[:inner], membership_values),
    )
    return forest, own


def forest_of(
    attributes: Mapping[str, Any], what: str
) -> tuple[Forest, Array, Array, Array, Array | None]:
    """Return a forest of the older operators, the weights of its leaves, and base values.

    Args:
        attributes: Those of the node.
        what: ``target`` or ``class``: how attributes of leaves begin.

    Returns:
        The forest; leaves, targets and weights, one each for every addend; base values.
    """
    forest, position = _forest_by_ids(
        attributes["nodes_falsenodeids"],
        attributes["nodes_featureids"],
        attributes.get("nodes_missing_value_tracks_true"),
        attributes["nodes_modes"],
        attributes["nodes_nodeids"],
        attributes["nodes_treeids"],
        attributes["nodes_truenodeids"],
        _floats(attributes.get("nodes_values"), attributes.get("nodes_values_as_tensor")),
    )
    pairs = zip(attributes[f"{what}_treeids"], attributes[f"{what}_nodeids"], strict=True)
    weights = _floats(
        attributes.get(f"{what}_weights"), attributes.get(f"{what}_weights_as_tensor")
    )
    base = None
    plain, tensor = attributes.get("base_values"), attributes.get("base_values_as_tensor")
    if plain or tensor is not None:
        base = _floats(plain, tensor)
    nodes = np.array([position[pair] for pair in pairs], np.int64)
    return forest, nodes, np.array(attributes[f"{what}_ids"], np.int64), weights, base


def ensemble_of(
    attributes: Mapping[str, Any],
) -> tuple[Forest, Array, Array, Array, str, str]:
    """Return a forest of the current operator, its leaves' weights, aggregate and transform."""
    forest, own = _table(
        attributes["nodes_modes"],
        attributes["nodes_splits"],
        attributes["leaf_weights"],
        attributes["nodes_truenodeids"],
        attributes["nodes_trueleafs"],
        attributes["nodes_falsenodeids"],
        attributes["nodes_falseleafs"],
        attributes["nodes_featureids"],
        attributes.get("nodes_missing_value_tracks_true"),
        attributes["tree_roots"],
        attributes.get("membership_values"),
    )
    return (
        forest,
        own,
        np.array(attributes["leaf_targetids"], np.int64),
        attributes["leaf_weights"],
        _AGGREGATES[attributes.get("aggregate_function", 1)],
        _TRANSFORMS[attributes.get("post_transform", 0)],
    )


def _members(mode: Array, values: Array | None) -> dict[int, Array]:
    """Split the membership values, in which NaN ends each set, over the nodes that use them."""
    nodes = np.flatnonzero(mode == _MODES["BRANCH_MEMBER"])
    if values is None or not len(nodes):
        return {}
    ends = np.flatnonzero(np.isnan(values))
    starts = np.concatenate([[0], ends[:-1] + 1])
    return {
        int(node): values[start:end] for node, start, end in zip(nodes, starts, ends, strict=True)
    }


def _infer_classifier(ctx: InferContext) -> Sequence[Any]:
    return infer_classifier(ctx, "classlabels_int64s")


def _infer_targets(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [(shape[0] if len(shape) > 1 else 1, ctx.attr("n_targets", 1))]


OPERATORS = (
    OpDef("TreeEnsemble", _infer_targets, _ensemble, domain=DOMAIN, vjp=flat),
    OpDef("TreeEnsembleClassifier", _infer_classifier, _classifier, domain=DOMAIN, vjp=flat),
    OpDef("TreeEnsembleRegressor", _infer_targets, _regressor, domain=DOMAIN, vjp=flat),
)
