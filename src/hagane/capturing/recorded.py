"""Compiled calls whose results lead back to the tensors that they were computed from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.capturing.leaves import NumberLeaf, TensorLeaf, Tree, leaves, objects, remade
from hagane.capturing.results import kinds_of, tensors_of
from hagane.capturing.tensors import returned, with_gradients
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
    structure = _structure(variant)
    kinds = kinds_of(structure)
    held: dict[str, Any] = {}

    def run() -> list[Any]:
        outputs = variant.run(tree)
        held.update((n, returned(v, kinds[n])) for n, v in outputs.items())
        return [held[name] for name, kind in kinds.items() if kind == _TENSOR]

    def again(saved: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        arguments, made = _apart(
            tree, saved, _TENSOR, lambda t: t.detach().requires_grad_(t.requires_grad)
        )
        return tensors_of(structure, original(arguments), _TENSOR), made

    names = [name for name, kind in kinds.items() if kind == _TENSOR]
    trained = {x.path for x in leaves(tree) if getattr(x.value, "requires_grad", False)}
    trained |= variant.trained
    apart = [trained.isdisjoint(variant.sources_of(name)) for name in names]
    outputs = with_gradients(run, again, apart, tensors)
    held.update(zip(names, outputs, strict=True))
    return rebuilt(structure, held, lambda value, kind: value, objects(tree))


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
