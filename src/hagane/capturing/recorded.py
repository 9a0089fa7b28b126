"""Compiled calls whose results lead back to the tensors that they were computed from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.capturing.later import Later
from hagane.capturing.laying import is_laid, lay_views
from hagane.capturing.leaves import NumberLeaf, TensorLeaf, Tree, leaves, objects, remade
from hagane.capturing.results import kinds_of, leaves_of, tensors_of
from hagane.capturing.tensors import as_array, returned, with_gradients
from hagane.capturing.variables import KIND, with_way_back
from hagane.capturing.variant import Variant
from hagane.frontends.capture.interface.rebuilding import rebuilt

Called = Callable[[Mapping[str, Any]], Any]
_TENSOR = "torch.Tensor"


def recorded(
    original: Called, variant: Variant, tree: Mapping[str, Tree], tensors: Sequence[Any]
) -> Any:
    """Return the result of a graph such that PyTorch can go back through it.

    Args:
        original: Returns the result of the program for its arguments by name.
        variant: The graph.
        tree: The arguments.
        tensors: Those among the arguments in order, then all others that gradients may go to.
    """
    assert variant.captured is not None
    structure = variant.captured.structure
    views = {n: view for n, view in variant.captured.views.items() if not view.axes}  # are laid
    kinds, held = kinds_of(structure), dict(variant.run(tree))
    tensor_leaves = [x for x in leaves(tree) if isinstance(x, TensorLeaf)]
    given = {x.path: x.value for x in tensor_leaves}
    feeds = {x.path: as_array(x) for x in tensor_leaves}
    # PyTorch goes through views by itself, but where a function has gradients of its own.
    found = {n: v for n, v in views.items() if is_laid(v, feeds, held, n)}
    within = {n: view for n, view in found.items() if view.by_function}
    laid = {n: view for n, view in found.items() if not view.by_function}
    parts = [part for part in leaves_of(structure) if part.kind.removeprefix("complex ") == _TENSOR]
    new = [not (part.is_found or part.name in laid) for part in parts]
    names = [part.name for part, is_new in zip(parts, new, strict=True) if is_new]
    # Tensors that are no results, and of which several results are parts.
    inner = {n: view for n, view in laid.items() if view.output not in ("", *kinds)}
    parts_of = {view.output: n for n, view in inner.items() if not (view.detached or view.still)}
    held.update((n, returned(held[n], kinds[n])) for n in kinds if n not in found)
    held.update((view.output, returned(held[view.output], _TENSOR)) for view in inner.values())

    def run() -> list[Any]:
        lay_views(within, feeds, held, given)
        return [held[name] for name in (*names, *parts_of)]

    def again(saved: Sequence[Any], is_recorded: bool) -> tuple[list[Any], list[Any]]:
        copied = _alias if is_recorded else _leaf
        arguments, made = _apart(tree, saved, _TENSOR, copied)
        results = tensors_of(structure, original(arguments), _TENSOR)
        by_name = {part.name: one for part, one in zip(parts, results, strict=True)}
        wholes = [_whole_of(by_name[name], held[base]) for base, name in parts_of.items()]
        return [*(by_name[name] for name in names), *wholes], made

    instead = Later(variant, tree, (*names, *parts_of)).gradients
    trained = {x.path for x in tensor_leaves if getattr(x.value, "requires_grad", False)}
    trained |= variant.trained
    apart = [trained.isdisjoint(variant.sources_of(name)) for name in (*names, *parts_of)]
    outputs = with_gradients(run, again, instead, apart, tensors)
    held.update(zip((*names, *parts_of), outputs, strict=True))
    lay_views(laid, feeds, held, given)
    return rebuilt(structure, held, lambda value, kind: value, {**objects(tree), **given}, {})


def _leaf(tensor: Any) -> Any:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _alias(tensor: Any) -> Any:
    """Return a tensor through which gradients of gradients go on."""
    return tensor.view_as(tensor)


def _whole_of(part: Any, made: Any) -> Any:
    """Return the tensor of which a result of the program is a view."""
    whole = part._base
    if whole is None or whole.shape != made.shape:
        raise RuntimeError(
            f"hagane.compile: gradients of a view of shape {tuple(part.shape)}: expected one of a "
            f"tensor of shape {tuple(made.shape)}; call the original for gradients"
        )
    return whole


def chained(
    original: Called, variant: Variant, tree: Mapping[str, Tree], variables: Sequence[Any]
) -> Any:
    """Return the result of a graph such that its variables lead back to others.

    Args:
        original: Returns the result of the program for its arguments by name.
        variant: The graph.
        tree: The arguments.
        variables: Those among the arguments in order, then all others that were read.
    """
    structure = _structure(variant)
    kinds = kinds_of(structure)
    names = [name for name, kind in kinds.items() if kind == KIND]
    held = {name: returned(v, kinds[name]) for name, v in variant.run(tree).items()}
    count = sum(isinstance(x, TensorLeaf) and x.kind == KIND for x in leaves(tree))

    def again(saved: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        arguments, made = _apart(tree, saved, KIND, copy.copy)
        return tensors_of(structure, original(arguments), KIND), [*made[:count], *variables[count:]]

    outputs = with_way_back([held[name].array for name in names], again, variables)
    held.update(zip(names, outputs, strict=True))
    return rebuilt(structure, held, lambda value, kind: value, objects(tree))


def _structure(variant: Variant) -> Any:
    assert variant.captured is not None
    return variant.captured.structure


def _apart(
    tree: Mapping[str, Tree], saved: Sequence[Any], kind: str, copied: Callable[[Any], Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Return the arguments of a call over copies of saved tensors, and these with the rest."""
    fresh = iter(saved)
    made: list[Any] = []

    def change(leaf: TensorLeaf | NumberLeaf) -> Any:
        if isinstance(leaf, NumberLeaf) or leaf.kind != kind:
            return leaf.value
        made.append(copied(next(fresh)))
        return made[-1]

    return remade(dict(tree), change), [*made, *fresh]


__all__ = ["chained", "recorded"]
