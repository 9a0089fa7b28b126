"""``torch.vmap`` as a program: a function of one item, called with each item of a batch.

https://docs.pytorch.org/docs/stable/generated/torch.vmap.html
"""

from __future__ import annotations

from typing import Any


def mapped(func: Any, in_dims: Any, out_dims: Any, inputs: Any, named: Any) -> Any:
    """Return what a function makes of each item, stacked along new axes of its results.

    Arguments by name are those of all items. A result whose axis is None is that of any item.
    """
    import torch
    from torch.utils._pytree import tree_flatten, tree_map

    axes = in_dims if isinstance(in_dims, (tuple, list)) else [in_dims] * len(inputs)
    counts = [count for value, axis in zip(inputs, axes, strict=True)
              for count in sizes_of(value, axis)]  # fmt: skip
    if not counts:
        raise ValueError("vmap needs at least one tensor with a batch")

    def items_at(place: Any) -> Any:
        return [item_of(value, axis, place) for value, axis in zip(inputs, axes, strict=True)]

    # What it writes into items, it writes once.
    first, spec = tree_flatten(func(*tree_map(copied, items_at(0)), **named))
    rows = []
    for place in range(counts[0]):
        rows.append(tuple(tree_flatten(func(*items_at(place), **named))[0]))
    behind = out_dims if isinstance(out_dims, (tuple, list)) else [out_dims] * spec.num_leaves
    found = [
        first[i] if behind[i] is None else torch.stack([row[i] for row in rows], behind[i])
        for i in range(spec.num_leaves)
    ]
    return spec.unflatten(found)


def copied(value: Any) -> Any:
    """Return a copy of a tensor, other values as they are."""
    import torch

    return value.clone() if isinstance(value, torch.Tensor) else value


def sizes_of(value: Any, axis: Any) -> Any:
    """Return the sizes of a value's batches, along one axis or each part's own."""
    import torch

    if axis is None:
        return []
    if isinstance(value, torch.Tensor):
        return [value.shape[axis]]
    if isinstance(value, dict):
        parts = [(part, axis[name] if isinstance(axis, dict) else axis)
                 for name, part in value.items()]  # fmt: skip
    elif isinstance(value, (tuple, list)):
        parts = [(part, axis[i] if isinstance(axis, (tuple, list)) else axis)
                 for i, part in enumerate(value)]  # fmt: skip
    else:
        parts = []
    return [size for part, along in parts for size in sizes_of(part, along)]


def item_of(value: Any, axis: Any, place: Any) -> Any:
    """Return an item of a value's batches; parts without a batch are those of all items."""
    import torch

    if axis is None:
        return value
    if isinstance(value, torch.Tensor):
        return value.select(axis, place)
    if isinstance(value, dict):
        return {name: item_of(part, axis[name] if isinstance(axis, dict) else axis, place)
                for name, part in value.items()}  # fmt: skip
    if isinstance(value, (tuple, list)):
        parts = [item_of(part, axis[i] if isinstance(axis, (tuple, list)) else axis, place)
                 for i, part in enumerate(value)]  # fmt: skip
        return tuple(parts) if isinstance(value, tuple) else parts
    return value
