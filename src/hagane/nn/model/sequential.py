"""Links and functions one after another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hagane.nn.autograd.parameter import Parameter
from hagane.nn.model.chain import ChainList, _listed
from hagane.nn.model.link import Link


class Sequential(ChainList):
    """Links and functions that are called one after another.

    Args:
        layers: Links, functions, or anything else that can be called.
    """

    def __init__(self, *layers: Any):
        super().__init__()
        self._layers: list[Any] = []
        for layer in layers:
            self.append(layer)

    def __len__(self) -> int:
        return len(self._layers)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._layers)

    def __contains__(self, item: object) -> bool:
        return item in self._layers

    def __getitem__(self, index: Any) -> Any:
        """Return a layer; a ``Sequential`` for a slice."""
        if isinstance(index, slice):
            return Sequential(*self._layers[index])
        return self._layers[index]

    def __setitem__(self, index: Any, layer: Any) -> None:
        """Replace a layer."""
        if not isinstance(index, int):
            raise ValueError("__setitem__ with slice is not supported: replace layers one by one")
        _check_layer(layer)
        if self._layers[index] is not layer:
            place = index + len(self) if index < 0 else index
            del self[place]
            self.insert(place, layer)

    def __delitem__(self, index: Any) -> None:
        """Remove layers."""
        places = range(len(self))[index] if isinstance(index, slice) else (index,)
        for place in sorted(places, reverse=True):
            layer = self._layers.pop(place)
            held = [i for i, link in enumerate(self._children) if link is layer]
            if held:
                del self._children[held[0]]
        self._rename()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._layers)

    def __str__(self) -> str:
        return _listed(self, ((f"({i}): ", layer) for i, layer in enumerate(self._layers)))

    def __iadd__(self, other: Iterable[Any]) -> Any:  # type: ignore[misc]
        if not isinstance(other, Iterable):
            raise ValueError(f"add (+=) expects layers, got {type(other)}")
        for layer in list(other):
            self.append(layer)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add (+) expects another Sequential, got {type(other)}")
        made = Sequential(*self)
        made += other
        return made

    def __mul__(self, other: int) -> Sequential:
        return self.repeat(other)

    def __rmul__(self, other: int) -> Sequential:
        return self.repeat(other)

    def insert(self, i: int, layer: Any) -> None:
        """Insert a layer.

        A link's number among the links, by which snapshots go, is Chainer's: behind the first link
        before it, and not behind the last.

        Raises:
            IndexError: There is no such place.
            ValueError: It cannot be called.
        """
        if not -len(self._layers) <= i <= len(self._layers):
            raise IndexError(
                f"invalid index ({i}) to a Sequential that holds {len(self._layers)} layers"
            )
        _check_layer(layer)
        place = i + len(self._layers) if i < 0 else i
        self._layers.insert(place, layer)
        if isinstance(layer, Link):
            before = (n for n, one in enumerate(self._layers[:place]) if isinstance(one, Link))
            self._children.insert(next(before, 0) + 1 if place else 0, layer)
            self._rename()

    def append(self, layer: Any) -> None:
        """Append a layer."""
        self.insert(len(self), layer)

    def extend(self, sequential: Any) -> None:
        """Append the layers of another ``Sequential``."""
        for layer in sequential:
            self.append(layer)

    def pop(self, i: int = -1) -> Any:
        """Remove and return a layer."""
        layer = self[i]
        del self[i]
        return layer

    def remove(self, layer: Any) -> None:
        """Remove a layer.

        Raises:
            ValueError: It is not there.
        """
        if layer not in self._layers:
            raise ValueError(f"there is no layer {layer}")
        del self[self._layers.index(layer)]

    def remove_by_layer_type(self, type_name: str) -> None:
        """Remove the layers whose class, or functions whose name, is ``type_name``."""
        for layer in [one for one in self._layers if _type_name(one) == type_name]:
            self.remove(layer)

    def count(self, layer: Any) -> int:
        """Return how often a layer occurs."""
        return self._layers.count(layer)

    def count_by_layer_type(self, type_name: str) -> int:
        """Return how many layers are of the class, or functions of the name, ``type_name``."""
        return sum(_type_name(layer) == type_name for layer in self._layers)

    def index(self, layer: Any, start: int | None = None, end: int | None = None) -> int:
        """Return the number of a layer."""
        return self._layers[start:end].index(layer)

    def clear(self) -> None:
        """Remove all layers."""
        self._layers = []
        self._children = []

    def reverse(self) -> None:
        """Reverse the order."""
        layers = self._layers[::-1]
        self.clear()
        self.extend(layers)

    def forward(self, *x: Any) -> Any:
        """Return the result of all layers, one after another.

        Raises:
            RuntimeError: There are none.
        """
        if not self._layers:
            raise RuntimeError("a Sequential without layers cannot be called")
        for layer in self._layers:
            x = layer(*x) if isinstance(x, tuple) else layer(x)
        return x[0] if isinstance(x, tuple) and len(x) == 1 else x

    def __call__(self, *x: Any, **options: Any) -> Any:
        """Run all layers."""
        return super().__call__(*x, **options)

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """Return the parameters of all layers; layers without any are skipped."""
        for _, parameter in self.namedparams(include_uninit):
            yield parameter

    def copy(self, mode: str = "share") -> Any:
        """Return a copy, with copies of the links in it."""
        made = Sequential()
        for layer in self._layers:
            if isinstance(layer, Link):
                made.append(layer.copy(mode))
            else:
                made.append(copy.copy(layer) if mode != "share" else layer)
        return made

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copy the arrays of another ``Sequential`` of the same structure."""
        if not isinstance(link, Sequential):
            raise TypeError(f"expected a Sequential, got {type(link)}")
        for own, other in zip(self, link, strict=True):
            if isinstance(own, Link):
                own.copyparams(other, copy_persistent)

    def flatten(self) -> Sequential:
        """Return a copy in which layers that are ``Sequential`` themselves are laid out."""
        made = Sequential()
        for layer in self._layers:
            if isinstance(layer, Sequential):
                made.extend(layer.flatten())
            else:
                made.append(layer)
        return made


def _check_layer(layer: Any) -> None:
    if not callable(layer):
        raise ValueError(
            f"all layers have to be callable, such as a Link or a function, got {type(layer)}"
        )


def _type_name(layer: Callable[..., Any]) -> str:
    if isinstance(layer, Link) or not hasattr(layer, "__name__"):
        return type(layer).__name__
    return layer.__name__
