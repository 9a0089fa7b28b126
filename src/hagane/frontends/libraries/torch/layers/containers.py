"""Containers of modules and parameters: lists, sequences and dictionaries of them."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    DictRef,
    Library,
    Many,
    Tensor,
    Value,
)

_MODULE = "torch.nn.Module"


def inner(t: Core, self: View) -> dict[str, Value]:
    """Return the modules of a container by name."""
    found = self.raw("_modules")
    held = t.heap[found] if isinstance(found, DictRef) else {}
    if not held and isinstance(self.instance().cls, Library) and self.instance().host is not None:
        kept = self.raw("_parameters")  # a real list or dictionary of parameters
        if isinstance(kept, DictRef) and "Parameter" in self.instance().cls.name:
            held = t.heap[kept]
    return held


def container(t: Core, modules_: dict[str, Value]) -> dict[str, Value]:
    """Return the attributes of a container."""
    return {"training": True, "_modules": t.new_dict(modules_)}


def listed(t: Core, modules_: Value) -> list[Value]:
    """Return modules given as any iterable."""
    if modules_ is None:
        return []
    if isinstance(modules_, list | tuple):
        return list(modules_)
    found = modules_ if isinstance(modules_, Many) else t.sequence(modules_)
    if isinstance(found, Many):
        t.fail(OPEN, "a container of a number of modules that is not known")
        raise AssertionError
    return found


def _item(t: Core, self: View, index: Value, cls: str) -> Value:
    names = list(inner(t, self))
    found = list(inner(t, self).values())
    if isinstance(index, slice):
        if not all(x is None or isinstance(x, int) for x in (index.start, index.stop, index.step)):
            t.fail(OPEN, "a part of a list of modules between places that are not known")
        picked = dict(zip(map(str, range(len(found))), found[index], strict=False))
        from hagane.frontends.python.values.values import Library

        return Instance(t.heap.new(container(t, picked)), Library(cls))
    if not isinstance(index, int):
        return t.item(t.new_list(found), index)
    if not -len(names) <= index < len(names):
        t.fail("index", f"index {index} is out of range for {len(names)} modules")
    return found[index]


@TORCH.layer("nn.ModuleList", base=_MODULE)
class ModuleList:
    """A list of modules."""

    @staticmethod
    def init(t: Core, modules: Value = None) -> dict[str, Value]:
        """Return the attributes of a list of modules."""
        return container(t, {str(i): m for i, m in enumerate(listed(t, modules))})

    @staticmethod
    def pop(t: Core, self: View, key: Value) -> Value:
        """Take a module out."""
        found = list(inner(t, self).values())
        if not isinstance(key, int):
            t.fail(OPEN, "a module taken out at a place that is not known")
        if not -len(found) <= key < len(found):
            t.fail("index", f"index {key} is out of range for {len(found)} modules")
        taken = found.pop(key)
        inner(t, self).clear()
        inner(t, self).update({str(i): m for i, m in enumerate(found)})
        return taken

    @staticmethod
    def append(t: Core, self: View, module: Value) -> Value:
        """Add a module at the end."""
        inner(t, self)[str(len(inner(t, self)))] = module
        return self.instance()

    @staticmethod
    def extend(t: Core, self: View, modules: Value) -> Value:
        """Add modules at the end."""
        for module in listed(t, modules):
            ModuleList.append(t, self, module)
        return self.instance()

    @staticmethod
    def __iadd__(t: Core, self: View, modules: Value) -> Value:
        return ModuleList.extend(t, self, modules)

    @staticmethod
    def insert(t: Core, self: View, index: Value, module: Value) -> Value:
        """Add a module at a place."""
        found = list(inner(t, self).values())
        found.insert(index, module)
        inner(t, self).clear()
        inner(t, self).update({str(i): m for i, m in enumerate(found)})
        return None

    @staticmethod
    def __len__(t: Core, self: View) -> Value:
        return len(inner(t, self))

    @staticmethod
    def __iter__(t: Core, self: View) -> Value:
        return t.new_list(list(inner(t, self).values()))

    @staticmethod
    def __getitem__(t: Core, self: View, index: Value) -> Value:
        return _item(t, self, index, "torch.nn.ModuleList")

    @staticmethod
    def __setitem__(t: Core, self: View, index: Value, module: Value) -> Value:
        names = list(inner(t, self))
        inner(t, self)[names[index]] = module
        return None


@TORCH.layer("nn.Sequential", base=_MODULE)
class Sequential(ModuleList):
    """Modules applied one after the other."""

    append, insert, pop = ModuleList.append, ModuleList.insert, ModuleList.pop
    __len__, __iter__, __setitem__ = ModuleList.__len__, ModuleList.__iter__, ModuleList.__setitem__

    @staticmethod
    def init(t: Core, *modules: Value) -> dict[str, Value]:
        """Return the attributes; the modules come one by one or in a dictionary."""
        if len(modules) == 1 and isinstance(modules[0], dict):
            return container(t, dict(modules[0]))
        return container(t, {str(i): m for i, m in enumerate(modules)})

    @staticmethod
    def extend(t: Core, self: View, sequential: Value) -> Value:
        """Add modules at the end."""
        return ModuleList.extend(t, self, sequential)

    @staticmethod
    def __getitem__(t: Core, self: View, index: Value) -> Value:
        return _item(t, self, index, "torch.nn.Sequential")

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Return the input through all modules."""
        value = t.wrap(input)
        for name, module in inner(t, self).items():
            t.emit.label = f"[{name}]"
            value = t.call(module, [value], {})
        return value


@TORCH.layer("nn.ModuleDict", base=_MODULE)
class ModuleDict:
    """Modules by name."""

    @staticmethod
    def init(t: Core, modules: Value = None) -> dict[str, Value]:
        """Return the attributes; the modules come as a dictionary or as pairs."""
        if isinstance(modules, list | tuple):
            modules = dict(modules)
        return container(t, dict(modules or {}))

    @staticmethod
    def __getitem__(t: Core, self: View, key: Value) -> Value:
        found = inner(t, self)
        if key not in found:
            t.fail("key", f"KeyError: expected one of the keys {list(found)}, got {key!r}")
        return found[key]

    @staticmethod
    def __setitem__(t: Core, self: View, key: Value, module: Value) -> Value:
        inner(t, self)[key] = module
        return None

    __len__ = ModuleList.__len__

    @staticmethod
    def __iter__(t: Core, self: View) -> Value:
        return t.new_list(list(inner(t, self)))

    @staticmethod
    def __contains__(t: Core, self: View, key: Value) -> Value:
        return key in inner(t, self)

    @staticmethod
    def keys(t: Core, self: View) -> Value:
        """Return the names."""
        return list(inner(t, self))

    @staticmethod
    def values(t: Core, self: View) -> Value:
        """Return the modules."""
        return list(inner(t, self).values())

    @staticmethod
    def items(t: Core, self: View) -> Value:
        """Return names with modules."""
        return list(inner(t, self).items())

    @staticmethod
    def update(t: Core, self: View, modules: Value) -> Value:
        """Set modules by name."""
        inner(t, self).update(dict(modules) if isinstance(modules, list | tuple) else modules)
        return None

    @staticmethod
    def pop(t: Core, self: View, key: Value) -> Value:
        """Take a module out."""
        found = ModuleDict.__getitem__(t, self, key)
        del inner(t, self)[key]
        return found

    @staticmethod
    def clear(t: Core, self: View) -> Value:
        """Take all modules out."""
        inner(t, self).clear()
        return None


@TORCH.layer("nn.ParameterList", base=_MODULE)
class ParameterList(ModuleList):
    """A list of parameters."""

    __len__, __iter__, __setitem__ = ModuleList.__len__, ModuleList.__iter__, ModuleList.__setitem__
    __getitem__ = ModuleList.__getitem__

    @staticmethod
    def init(t: Core, values: Value = None) -> dict[str, Value]:
        """Return the attributes of a list of parameters."""
        return container(t, {str(i): _trained(m) for i, m in enumerate(listed(t, values))})

    @staticmethod
    def append(t: Core, self: View, value: Value) -> Value:
        """Add a parameter at the end."""
        return ModuleList.append(t, self, _trained(value))

    @staticmethod
    def extend(t: Core, self: View, values: Value) -> Value:
        """Add parameters at the end."""
        return ModuleList.extend(t, self, [_trained(value) for value in listed(t, values)])


@TORCH.layer("nn.ParameterDict", base=_MODULE)
class ParameterDict(ModuleDict):
    """Parameters by name."""

    keys, values, items, pop, clear = (
        ModuleDict.keys, ModuleDict.values, ModuleDict.items, ModuleDict.pop, ModuleDict.clear
    )  # fmt: skip
    __getitem__, __contains__ = ModuleDict.__getitem__, ModuleDict.__contains__
    __len__, __iter__ = ModuleDict.__len__, ModuleDict.__iter__

    @staticmethod
    def init(t: Core, parameters: Value = None) -> dict[str, Value]:
        """Return the attributes; the parameters come as a dictionary or as pairs."""
        made = ModuleDict.init(t, parameters)
        held = t.heap[made["_modules"]]
        held.update({key: _trained(value) for key, value in held.items()})
        return made

    @staticmethod
    def __setitem__(t: Core, self: View, key: Value, value: Value) -> Value:
        return ModuleDict.__setitem__(t, self, key, _trained(value))

    @staticmethod
    def update(t: Core, self: View, parameters: Value) -> Value:
        """Set parameters by name."""
        given = dict(parameters)
        return ModuleDict.update(t, self, {key: _trained(value) for key, value in given.items()})

    @staticmethod
    def get(t: Core, self: View, key: Value, default: Value = None) -> Value:
        """Return a parameter, or something else without one."""
        return inner(t, self).get(key, default)


def _trained(value: Value) -> Value:
    """Return a tensor as the parameter that containers of parameters make of it."""
    if not isinstance(value, Tensor) or value.parameter:
        return value
    made = value.seen_as(value.kind)
    made.parameter = True
    return made
