"""``chainer.Link`` and compositions of links: chains, lists, sequences; parameters."""

from __future__ import annotations

import copy as python
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hagane.frontends.libraries.chainer import programs
from hagane.frontends.libraries.chainer.configuration import initial_dtype
from hagane.frontends.libraries.chainer.operands import (
    FLOAT,
    dtype_of,
    is_lazy,
    new_parameter,
    shape_of,
    sizes,
)
from hagane.frontends.libraries.chainer.table import CHAINER
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.own_programs import run_own
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Library,
    ListRef,
    Many,
    Tensor,
    Value,
)

LINK = "chainer.Link"
_LIST = "_children"
CHAINER.bases.update({"chainer.Chain": LINK, "chainer.ChainList": LINK})


@CHAINER.function("Parameter")
def parameter(
    t: Core, initializer: Value = None, shape: Value = None, name: Value = None, **_: Value
) -> Tensor:
    """Return a parameter; one without a shape gets it from the first input."""
    if shape is None and isinstance(initializer, Tensor):
        wanted: Any = shape_of(t, initializer)
    else:
        wanted = None if shape is None else tuple(sizes(t, shape))
    return new_parameter(t, initial_dtype(t, initializer), wanted)


@CHAINER.layer("Link")
class Link:
    """The base class: parameters are attributes."""

    @staticmethod
    def init(t: Core, **params: Value) -> dict[str, Value]:
        """Return the attributes: parameters of the shapes given by name."""
        made = {}
        for name, value in params.items():
            pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple)
            made[name] = parameter(t, None, value[0] if pair else value)
        return made


@CHAINER.layer("Chain", base=LINK)
class Chain:
    """A link of links, which are attributes."""

    @staticmethod
    def init(t: Core, **links: Value) -> dict[str, Value]:
        """Return the attributes: the links given by name."""
        return dict(links)


def is_link(t: Core, value: Value) -> bool:
    """Whether a value is a link."""
    return isinstance(value, Instance) and LINK in t.tables.libraries_of(t, value)


def items_of(t: Core, link: Instance) -> list[Value]:
    """Return the links of a list of links, the layers of a sequence."""
    found = t.heap[link].get(_LIST)
    if found is None and link.host is not None:
        own = vars(link.host)
        held = own.get("_layers", own.get(_LIST))
        found = t.lift(held) if isinstance(held, list) else None
    content = t.heap[found] if isinstance(found, ListRef) else ()
    if isinstance(content, Many):
        t.fail(OPEN, "a list of links of a length that is not known")
    return list(content)


def _public(link: Any) -> tuple[str, ...]:
    """Return the names of a real link's attributes that hold parts of it."""
    return tuple(name for name in vars(link) if not name.startswith("_"))


def members(t: Core, link: Instance) -> dict[str, Value]:
    """Return the attributes of a link, the items of a list by their numbers."""
    names = () if link.host is None else _public(link.host)
    if link.host is not None:
        t.observer.asked(link.host, partial(_public, link.host), names)
    found = {name: t.find_attribute(link, name) for name in names}
    found |= {name: value for name, value in t.heap[link].items() if name != _LIST}
    found.update({str(i): item for i, item in enumerate(items_of(t, link))})
    return found


def walk(t: Core, link: Instance, prefix: str = "") -> Iterator[tuple[str, Instance]]:
    """Yield a link and all inside it with their paths."""
    yield prefix or "/", link
    for name, child in members(t, link).items():
        if is_link(t, child):
            yield from walk(t, child, f"{prefix}/{name}")


def tensors(t: Core, link: Instance, include_uninit: bool) -> list[tuple[str, Tensor]]:
    """Return all parameters inside with their paths, each once."""
    found: dict[int, tuple[str, Tensor]] = {}
    for path, inner in walk(t, link):
        for name, value in members(t, inner).items():
            if not isinstance(value, Tensor) or not value.parameter:
                continue
            if include_uninit or not is_lazy(value):
                whole = f"/{name}" if path == "/" else f"{path}/{name}"
                found.setdefault(id(value), (whole, value))
    return list(found.values())


def _method(*names: str) -> Callable[[Any], Any]:
    return CHAINER.method(*names, of=LINK)


@CHAINER.attribute("xp", of=LINK)
def xp(t: Core, self: Value) -> Value:
    """Return the module of its arrays."""
    return Library("numpy")


@CHAINER.attribute("device", of=LINK)
def device(t: Core, self: Value) -> Value:
    """Return the device of its arrays."""
    return run_own(t, programs.get_device, ["@numpy"], {})


@CHAINER.attribute("name", of=LINK)
def name_of(t: Core, self: Value) -> Value:
    """Return None."""
    return None


@CHAINER.attribute("within_init_scope", "update_enabled", of=LINK)
def yes(t: Core, self: Value) -> Value:
    """Return True."""
    return True


@_method("init_scope")
def init_scope(t: Core, self: Value) -> Value:
    """Return a context in which parameters are made."""
    return None


@_method("add_param")
def add_param(t: Core, self: Value, name: Value, shape: Value = None, dtype: Value = None,
              initializer: Value = None) -> Value:  # fmt: skip
    """Set a new parameter as an attribute."""
    made = parameter(t, initializer, shape)
    made.dtype = dtype_of(t, dtype, made.dtype)
    t.heap[self][name] = made
    return None


@_method("add_persistent")
def add_persistent(t: Core, self: Value, name: Value, value: Value) -> Value:
    """Set a value that is saved as an attribute."""
    t.heap[self][name] = value
    return None


@_method("add_link")
def add_link(t: Core, self: Value, name: Value, link: Value = None) -> Value:
    """Set a link as an attribute, or append it to a list."""
    if _LIST in t.heap[self] and link is None:
        _store(t, self, [*items_of(t, self), name])
    else:
        t.heap[self][name] = link
    return None


@_method("register_persistent", "cleargrads", "zerograds", "disable_update", "enable_update",
         "serialize", "addgrads", "copyparams", "delete_hook")  # fmt: skip
def nothing(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return None: it changes no type."""
    return None


@_method("to_cpu", "to_gpu", "to_intel64", "to_chx", "from_chx", "to_device", "add_hook")
def same(t: Core, self: Value, *_: Value, **__: Value) -> Value:
    """Return the link itself."""
    return self


@_method("copy")
def copy(t: Core, self: Value, mode: Value = "share") -> Value:
    """Return a copy."""
    return t.call_builtin(Host(python.deepcopy), [self], {})


@_method("repeat")
def repeat(t: Core, self: Value, n_repeat: Value, mode: Value = "init") -> Value:
    """Return a sequence of copies."""
    if not isinstance(n_repeat, int):
        t.fail(OPEN, "a number of copies that is not known")
    copies = [copy(t, self) for _ in range(n_repeat)]
    return t.call_library("chainer.Sequential", copies)


@_method("params")
def params(t: Core, self: Value, include_uninit: Value = True) -> Value:
    """Return all parameters."""
    return t.new_stream([tensor for _, tensor in tensors(t, self, bool(include_uninit))])


@_method("namedparams")
def namedparams(t: Core, self: Value, include_uninit: Value = True) -> Value:
    """Return all parameters with their paths."""
    return t.new_stream(list(tensors(t, self, bool(include_uninit))))


@_method("links")
def links(t: Core, self: Value, skipself: Value = False) -> Value:
    """Return all links inside, this one first."""
    found = [link for _, link in walk(t, self)]
    return t.new_stream(found[1:] if skipself else found)


@_method("namedlinks")
def namedlinks(t: Core, self: Value, skipself: Value = False) -> Value:
    """Return all links inside with their paths."""
    found = list(walk(t, self))
    return t.new_stream(found[1:] if skipself else found)


@_method("children")
def children(t: Core, self: Value) -> Value:
    """Return the links directly inside."""
    return t.new_stream([v for v in members(t, self).values() if is_link(t, v)])


@_method("count_params")
def count_params(t: Core, self: Value) -> Value:
    """Return the number of all parameters' elements."""
    from hagane.symbolic import product

    return sum(product(shape_of(t, x)) for _, x in tensors(t, self, False))


@CHAINER.method("__getitem__", of="chainer.Chain")
def chain_item(t: Core, self: Value, name: Value) -> Value:
    """Return the link, or any other attribute, of a name."""
    found = t.find_attribute(self, name) if isinstance(name, str) else MISSING
    if found is MISSING:
        known = ", ".join(n for n, v in members(t, self).items() if is_link(t, v))
        t.fail(
            "key",
            f"expected the name of a link ({known or 'none'}) or of another attribute, "
            f"got {name!r}",
        )
    return found


def _store(t: Core, link: Value, items: list[Value]) -> None:
    t.heap[link][_LIST] = t.new_list(items)


@CHAINER.layer("ChainList", base=LINK)
class ChainList:
    """A list of links."""

    @staticmethod
    def init(t: Core, *links: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {_LIST: t.new_list(links)}

    @staticmethod
    def append(t: Core, self: View, value: Value) -> Value:
        """Add a link at the end."""
        _store(t, self.instance(), [*items_of(t, self.instance()), value])
        return None

    @staticmethod
    def extend(t: Core, self: View, iterable: Value) -> Value:
        """Add links at the end."""
        more = iterable if isinstance(iterable, list | tuple) else t.sequence(iterable)
        if isinstance(more, Many):
            t.fail(OPEN, "a number of links that is not known")
        _store(t, self.instance(), [*items_of(t, self.instance()), *more])
        return None

    @staticmethod
    def insert(t: Core, self: View, index: Value, child: Value) -> Value:
        """Add a link at a place."""
        found = items_of(t, self.instance())
        found.insert(index, child)
        _store(t, self.instance(), found)
        return None

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        """Return how many there are."""
        return len(items_of(t, self.instance()))

    @staticmethod
    def __iter__(t: Core, self: View) -> Value:
        """Return an iterator over them."""
        return t.new_stream(items_of(t, self.instance()))

    @staticmethod
    def __getitem__(t: Core, self: View, index: Value) -> Value:
        """Return one of them, or several."""
        return item_of(t, self, index, "chainer.ChainList")

    @staticmethod
    def __setitem__(t: Core, self: View, index: Value, child: Value) -> Value:
        """Replace one of them."""
        found = items_of(t, self.instance())
        found[index] = child
        _store(t, self.instance(), found)
        return None


def item_of(t: Core, self: View, index: Value, cls: str) -> Value:
    """Return an item of a list of links, a list of the same class for a slice."""
    found = items_of(t, self.instance())
    if isinstance(index, slice):
        return t.call_library(cls, found[index])
    if not isinstance(index, int):
        return t.lost("an item of a list of links at a place that is not known")
    if not -len(found) <= index < len(found):
        t.fail("index", f"IndexError: index {index} is out of range for {len(found)} links")
    return found[index]


@CHAINER.layer("Sequential", base="chainer.ChainList")
class Sequential:
    """Links and functions that are called one after another."""

    @staticmethod
    def init(t: Core, *layers: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {_LIST: t.new_list(layers)}

    @staticmethod
    def forward(t: Core, self: View, *x: Value) -> Value:
        """Call all of them, each with the result of the one before."""
        values = list(x)
        for layer in items_of(t, self.instance()):
            found = t.call(layer, values, {})
            values = list(found) if isinstance(found, tuple) else [found]
        return values[0] if len(values) == 1 else tuple(values)

    @staticmethod
    def __getitem__(t: Core, self: View, index: Value) -> Value:
        """Return one of them, or several as a sequence."""
        return item_of(t, self, index, "chainer.Sequential")

    @staticmethod
    def flatten(t: Core, self: View) -> Value:
        """Return a sequence without sequences inside."""
        return t.call_library("chainer.Sequential", list(_flat(t, self.instance())))


def _flat(t: Core, link: Instance) -> Iterator[Value]:
    for item in items_of(t, link):
        if isinstance(item, Instance) and "chainer.Sequential" in t.tables.libraries_of(t, item):
            yield from _flat(t, item)
        else:
            yield item


__all__ = ["FLOAT", "LINK", "is_link", "parameter"]
