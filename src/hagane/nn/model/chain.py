"""Links of links, by name and by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hagane.nn.autograd.parameter import Parameter
from hagane.nn.model.link import Link


class _Holder(Link):
    """A link that holds others."""

    def _held(self) -> Iterator[tuple[str, Link]]:
        raise NotImplementedError

    def params(self, include_uninit: bool = True) -> Iterator[Parameter]:
        """Return its parameters, then those of the links in it."""
        yield from super().params(include_uninit)
        for _, link in self._held():
            yield from link.params(include_uninit)

    def namedparams(self, include_uninit: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Return paths and parameters, its own first."""
        yield from super().namedparams(include_uninit)
        for name, link in self._held():
            for path, parameter in link.namedparams(include_uninit):
                yield f"/{name}{path}", parameter

    def links(self, skipself: bool = False) -> Iterator[Link]:
        """Return itself and all links in it."""
        if not skipself:
            yield self
        for _, link in self._held():
            yield from link.links()

    def namedlinks(self, skipself: bool = False) -> Iterator[tuple[str, Link]]:
        """Return paths and links."""
        if not skipself:
            yield "/", self
        for name, link in self._held():
            yield f"/{name}", link
            for path, inner in link.namedlinks(skipself=True):
                yield f"/{name}{path}", inner

    def children(self) -> Iterator[Link]:
        """Return the links that it holds directly."""
        return (link for _, link in self._held())

    def serialize(self, serializer: Any) -> None:
        """Read or write its own values, then those of the links in it."""
        super().serialize(serializer)
        for name, link in self._held():
            link.serialize(serializer[name])

    def device_resident_accept(self, visitor: Any) -> None:
        """Let a visitor see the arrays."""
        super().device_resident_accept(visitor)
        for link in self.children():
            link.device_resident_accept(visitor)


class Chain(_Holder):
    """A link that holds others as attributes, registered inside ``init_scope``.

    Args:
        links: Links to register by their names.
    """

    def __init__(self, **links: Link):
        super().__init__()
        self._children: set[str] = set()
        for name, link in links.items():
            self.add_link(name, link)

    def _held(self) -> Iterator[tuple[str, Link]]:
        return ((name, self.__dict__[name]) for name in sorted(self._children))

    def __str__(self) -> str:
        return _listed(self, ((f"({name}): ", link) for name, link in self._held()))

    def __getitem__(self, name: str) -> Any:
        """Return the link of a name."""
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Link) and self.within_init_scope:
            if hasattr(self, name):
                raise AttributeError(f"cannot register a new link {name}: attribute exists")
            value.name = name
            self._children.add(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._children.discard(name)
        super().__delattr__(name)

    def add_link(self, name: str, link: Link) -> None:
        """Register a link.

        Raises:
            AttributeError: There is an attribute of that name.
            TypeError: It is no link.
        """
        if name in self.__dict__:
            raise AttributeError(f"cannot register a new link {name}: attribute exists")
        if not isinstance(link, Link):
            raise TypeError(f"cannot register a non-link object as a child: {type(link)}")
        with self.init_scope():
            setattr(self, name, link)

    def copy(self, mode: str = "share") -> Any:
        """Return a copy, with copies of the links in it."""
        made = super().copy(mode)
        made._children = set(self._children)
        for name in sorted(made._children):  # a seed gives the same weights in every process
            link = made.__dict__[name].copy(mode)
            link.name = name
            made.__dict__[name] = link
        return made

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copy the arrays of another chain of the same structure."""
        super().copyparams(link, copy_persistent)
        for name, own in self._held():
            own.copyparams(link.__dict__[name], copy_persistent)

    def addgrads(self, link: Link) -> None:
        """Add the gradients of another chain of the same structure."""
        super().addgrads(link)
        for name, own in self._held():
            own.addgrads(link.__dict__[name])


class ChainList(_Holder):
    """A link that holds others by number.

    Args:
        links: Links to append.
    """

    def __init__(self, *links: Link):
        super().__init__()
        self._children: list[Link] = []
        for link in links:
            self.append(link)

    def _held(self) -> Iterator[tuple[str, Link]]:
        return ((str(i), link) for i, link in enumerate(self._children))

    def __str__(self) -> str:
        return _listed(self, ((f"({name}): ", link) for name, link in self._held()))

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Link) and self.within_init_scope:
            raise TypeError(
                "cannot register a new link within a 'with chainlist.init_scope():' block; "
                "use append or add_link"
            )
        super().__setattr__(name, value)

    def __getitem__(self, index: Any) -> Any:
        """Return a link, or a list of them for a slice."""
        return self._children[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace links."""
        if isinstance(index, int):
            value.name = str(index % len(self._children) if self._children else index)
            self._children[index] = value
        elif isinstance(index, slice):
            self._children[index] = value
            self._rename()
        else:
            raise TypeError(f"ChainList indices must be integers or slices, not {type(index)}")

    def __delitem__(self, index: Any) -> None:
        """Remove links."""
        del self._children[index]
        self._rename()

    def _rename(self) -> None:
        for i, link in enumerate(self._children):
            link.name = str(i)

    def insert(self, index: int, link: Link) -> None:
        """Insert a link."""
        if index == len(self._children):
            self._children.append(link)
            link.name = str(index)
        else:
            self._children.insert(index, link)
            self._rename()

    def append(self, value: Link) -> None:
        """Append a link."""
        self._children.append(value)
        value.name = str(len(self._children) - 1)

    def extend(self, values: Iterable[Link]) -> None:
        """Append links."""
        for link in values:
            self.append(link)

    def add_link(self, link: Link) -> None:
        """Append a link."""
        self.append(link)

    def pop(self, index: int = -1) -> Link:
        """Remove and return a link."""
        link = self._children.pop(index)
        self._rename()
        return link

    def remove(self, value: Link) -> None:
        """Remove a link."""
        self._children.remove(value)
        self._rename()

    def clear(self) -> None:
        """Remove all links."""
        self._children.clear()

    def index(self, value: Link, start: int = 0, stop: int | None = None) -> int:
        """Return the number of a link."""
        return self._children.index(value, start, len(self) if stop is None else stop)

    def count(self, value: Link) -> int:
        """Return how often a link occurs."""
        return self._children.count(value)

    def reverse(self) -> None:
        """Reverse the order."""
        self._children.reverse()
        self._rename()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    def __contains__(self, link: object) -> bool:
        return link in self._children

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._children)

    def __iadd__(self, links: Iterable[Link]) -> Any:
        self.extend(links)
        return self

    def copy(self, mode: str = "share") -> Any:
        """Return a copy, with copies of the links in it."""
        made = super().copy("share" if mode == "share" else "copy")
        # (The links in it draw their weights once, as Chainer's do, and in its order.)
        made._children = [link.copy(mode) for link in self._children]
        made._rename()
        for name in sorted(made._params) if mode == "init" else ():
            parameter = made.__dict__[name]
            if parameter.array is not None:
                parameter.initialize(parameter.shape)
        return made

    def copyparams(self, link: Link, copy_persistent: bool = True) -> None:
        """Copy the arrays of another list of the same structure."""
        super().copyparams(link, copy_persistent)
        for own, other in zip(self._children, link._children, strict=False):
            own.copyparams(other, copy_persistent)

    def addgrads(self, link: Link) -> None:
        """Add the gradients of another list of the same structure."""
        super().addgrads(link)
        for own, other in zip(self._children, link._children, strict=False):
            own.addgrads(other)


def _listed(link: Link, children: Iterable[tuple[str, Any]]) -> str:
    lines = []
    for label, child in children:
        lines += [f"  {line}" for line in f"{label}{child},".split("\n")]
    specs = ", ".join(f"{key}={value}" for key, value in link.printable_specs)
    if not lines:
        return f"{type(link).__name__}({specs})"
    return "\n".join([f"{type(link).__name__}({specs}", *lines, ")"])
