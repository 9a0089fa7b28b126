"""``torch.utils._pytree``: nested containers as lists of leaves, and back.

Interpreted like a program of the user's. Lists, tuples, named tuples and dictionaries are nodes;
everything else is a leaf, None included.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class TreeSpec:
    """The containers around leaves."""

    def __init__(self, kind: str, context: Any, children_specs: Any) -> None:
        self.kind = kind
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum([one.num_nodes for one in children_specs])
        self.num_leaves = sum([one.num_leaves for one in children_specs]) + (kind == "leaf")

    def is_leaf(self) -> bool:
        """Whether this is a leaf."""
        return self.kind == "leaf"

    def unflatten(self, leaves: Any) -> Any:
        """Return containers of leaves."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(f"expected {self.num_leaves} leaves, got {len(given)}")
        return self._filled(given)

    def _filled(self, leaves: Any) -> Any:
        if self.kind == "leaf":
            return leaves[0]
        parts = []
        start = 0
        for one in self.children_specs:
            parts.append(one._filled(leaves[start : start + one.num_leaves]))
            start = start + one.num_leaves
        if self.kind == "list":
            return parts
        if self.kind == "tuple":
            return tuple(parts)
        if self.kind == "named":
            return self.context(*parts)
        pairs = zip(self.context, parts, strict=True)
        return OrderedDict(pairs) if self.kind == "ordered" else dict(pairs)


def _parts(tree: Any, is_leaf: Any) -> Any:
    """Return the kind of a node, what it takes besides its items, and those."""
    if is_leaf is not None and is_leaf(tree):
        return "leaf", None, []
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return "named", type(tree), list(tree)
    if type(tree) is tuple or hasattr(tree, "n_sequence_fields"):  # torch.return_types.max
        return "tuple", None, list(tree)
    if type(tree) is list:
        return "list", None, tree
    if type(tree) is OrderedDict:
        return "ordered", list(tree.keys()), list(tree.values())
    if type(tree) is dict:
        return "dict", list(tree.keys()), list(tree.values())
    return "leaf", None, []


def tree_flatten(tree: Any, is_leaf: Any = None) -> Any:
    """Return the leaves of a tree, and the containers around them."""
    kind, context, items = _parts(tree, is_leaf)
    if kind == "leaf":
        return [tree], TreeSpec("leaf", None, [])
    leaves: list[Any] = []
    specs = []
    for item in items:
        inner, spec = tree_flatten(item, is_leaf)
        leaves = leaves + inner
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """Return containers of leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Any = None) -> Any:
    """Return the leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Any = None) -> Any:
    """Return the containers of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Any, tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
    """Return a tree of what a function makes of the leaves of one or several."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [tree_leaves(rest, is_leaf) for rest in rests]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_only(type_or_types_or_pred: Any, func: Any, tree: Any, is_leaf: Any = None) -> Any:
    """Return a tree where a function is applied to leaves of some types alone."""
    leaves, spec = tree_flatten(tree, is_leaf)
    made = []
    for leaf in leaves:
        if isinstance(type_or_types_or_pred, (type, tuple)):
            chosen = isinstance(leaf, type_or_types_or_pred)
        else:
            chosen = type_or_types_or_pred(leaf)
        made.append(func(leaf) if chosen else leaf)
    return spec.unflatten(made)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "tree_flatten": tree_flatten,
    "tree_unflatten": tree_unflatten,
    "tree_leaves": tree_leaves,
    "tree_structure": tree_structure,
    "tree_map": tree_map,
    "tree_map_only": tree_map_only,
}
