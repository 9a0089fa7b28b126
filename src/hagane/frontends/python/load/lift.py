"""Real objects of the running Python as values of the program."""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
import linecache
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.running import Observer
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.cells import Cells
from hagane.frontends.python.load.definitions import Definitions
from hagane.frontends.python.load.modules import STANDARD
from hagane.frontends.python.load.wrappers import (
    MIXINS,
    adds_nothing,
    is_inner,
    is_manager,
    is_method_of_library,
    managers_of,
)
from hagane.frontends.python.values.deques import new_deque
from hagane.frontends.python.values.hashed import Step
from hagane.frontends.python.values.in_python import base_in_python, partial_method
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Generated,
    Instance,
    ModuleRef,
    Wrapped,
    is_key,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Device,
    DictRef,
    Fields,
    Host,
    Library,
    ListRef,
    SetRef,
    Tensor,
    Value,
    is_plain,
)
from hagane.symbolic import Expr

_ABSTRACT = (Tensor, Expr, Instance, Function, Class, Library, Size)
_CHANGING = (Instance, Class, ListRef, DictRef, SetRef)


class Lift(Core):
    """Finds the stand-in of a real object: known values, library names, source to interpret."""

    tables: Tables
    observer: Observer

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # Stand-ins of real objects, by their identity, with the objects.
        self.lifted: dict[int, tuple[Any, Value]] = {}
        self.cells = Cells(self)
        self._hosts: dict[int, Instance] = {}  # those of them with attributes, by their keys
        self.heap.originals.ask = self._original_attribute
        self._definitions = Definitions()
        self._mixins: dict[type, Value] = {}

    def lift(self, found: Any) -> Value:
        """Return the stand-in of a real object."""
        plain = is_plain(found) and not isinstance(found, tuple | np.generic)
        if isinstance(found, _ABSTRACT) or plain or isinstance(found, np.str_ | np.bytes_):
            return found
        original = _original(found)
        if original is not found:
            return self.lift(original)
        known = self.lifted.get(id(found))
        if known is not None and known[0] is found:
            return known[1]
        value = self._lift(found)
        self.lifted[id(found)] = (found, value)
        if isinstance(value, _CHANGING) and value.key in self.heap.contents and self.emit.literal:
            self.heap.originals.keep(value.key, self.heap.contents[value.key])
            if isinstance(value, Instance):
                self._hosts[value.key] = value
        self.observer.lifted(found, value)
        return value

    def _original_attribute(self, key: int, name: str) -> Value:
        """Return an attribute of a real object, as it is before the call."""
        value = self._hosts.get(key)
        if value is None or value.host is None:
            return MISSING
        held = partial(self.host_attribute, value.host, name)
        return self.observer.attribute(value, name, held)

    def real_class(self, cls: Class) -> type | None:
        """Return the class of the running Python that a class stands for, None if none does."""
        found = (real for real, value in self.lifted.values() if value is cls)
        return next((real for real in found if isinstance(real, type)), None)

    def _lift(self, found: Any) -> Value:
        name = self.tables.name_of(found)
        if name is not None:
            return Library(name)
        special = self.tables.lift_object(self, found)
        if special is not MISSING:
            return special
        if hasattr(type(found), "n_sequence_fields"):  # what os.stat gives: more than a tuple
            return Host(found)
        if isinstance(found, dict | list | tuple) and type(found) not in (dict, list, tuple):
            cls = self.lift(type(found))
            if isinstance(cls, Class) and "named tuple" in cls.flags:
                items = map(self.lift, found)
                fields = getattr(found, "_fields", ())
                content = dict(zip(fields, items, strict=True))
                return Instance(self.heap.new(content), cls, found)
            if isinstance(cls, Class):
                return self._object(found)
        match found:
            case list():
                return self.new_list([self.lift(item) for item in found])
            case deque() if type(found) is deque:
                return new_deque(self.heap, found.maxlen, [self.lift(item) for item in found])
            case tuple():
                items, names = map(self.lift, found), getattr(found, "_fields", ())
                return Fields(items, names) if names else tuple(items)
            case dict():
                kind = "OrderedDict" if isinstance(found, OrderedDict) else "dict"
                if isinstance(found, defaultdict):
                    kind = f"defaultdict:{self.heap.new(self.lift(found.default_factory))}"
                elif isinstance(found, Counter):
                    kind = "Counter"
                return self.new_dict(
                    {self.lift_key(key): self.lift(item) for key, item in [*found.items()]}, kind
                )
            case types.MappingProxyType():
                return self.new_dict({self.lift_key(k): self.lift(v) for k, v in found.items()})
            case set():
                held = [self.lift(item) for item in found]
                return self.new_set(held, step=Step(None, "given", (found,)))
            case np.ndarray() | np.generic():
                return self.tables.lift_array(self, np.asarray(found), "numpy.ndarray")
            case types.ModuleType():
                return self._module(found)
            case types.FunctionType():
                followed = is_method_of_library(found) or not is_standard(found)
                return self.lift_function(found) if followed else Host(found)
            case types.MethodType():
                owner = self.lift(found.__self__)
                if isinstance(owner, Class):  # a library may say its meaning
                    named = getattr(found.__self__, found.__name__, None)
                    made = self.find_attribute(owner, found.__name__)
                    if named == found and made is not MISSING:
                        return made
                return Bound(self.lift(found.__func__), owner)
            case property():
                deleter = {"deleter": self.lift(found.fdel)}
                return Wrapped("property", self.lift(found.fget), (self.lift(found.fset),), deleter)
            case functools.partialmethod():
                return self.lift_function(partial_method(found.func, *found.args, **found.keywords))
            case functools.cached_property():
                return Wrapped("cached property", self.lift(found.func))
            case functools.partial():
                return Wrapped(
                    "partial",
                    self.lift(found.func),
                    tuple(map(self.lift, found.args)),
                    {name: self.lift(value) for name, value in found.keywords.items()},
                )
            case _ if _is_scripted(found):
                return self.lift(found._torchdynamo_inline)
            case _ if _has(found, "cache_info") and _has(found, "__wrapped__"):
                # One of the user's own may be there to give one random number, not two.
                own = _is_user(getattr(inspect.unwrap(found), "__code__", _NO_CODE).co_filename)
                return Host(found) if own else self.lift(found.__wrapped__)
            case staticmethod() | classmethod():
                return Wrapped(type(found).__name__, self.lift(found.__func__))
            case type():
                return self._class(found)
        return self._object(found)

    def lift_key(self, found: Any) -> Value:
        """Return the key of a dictionary as a value of the program."""
        value = self.lift(found)
        return value if is_key(value) else found

    def _module(self, found: types.ModuleType) -> Value:
        if not self.tables.reads(found.__name__):
            return Library(found.__name__)
        file = vars(found).get("__file__")  # not what a __getattr__ makes of it
        if file is None or not _is_user(file):
            return Host(found)
        return self._module_of(found.__name__, file, vars(found))

    def _module_of(self, name: str, file: str, names: dict[str, Any]) -> ModuleRef:
        key = f"host:{id(names)}:{file}"  # a file may have run several times
        if key not in self.modules:
            self.modules[key] = ModuleRef(self.heap.new({}), name, file, names, _is_user(file))
        return self.modules[key]

    def _managed_by(self, function: Value, managers: Sequence[Any]) -> Value:
        """Return a function that runs within context managers, the outermost first."""
        for manager in reversed(managers):
            function = Wrapped("within", function, (self.lift(manager),))
        return function

    def lift_function(self, found: types.FunctionType) -> Value:
        """Return the stand-in of a function: its source, or the function itself."""
        plain: Any = found
        managers = []
        while hasattr(plain, "__wrapped__") and adds_nothing(plain):
            managers += managers_of(plain, gradients=self.emit.builds and not self.emit.began_still)
            plain = plain.__wrapped__
        if not isinstance(plain, types.FunctionType):
            inner = Host(found) if plain is found else self.lift(plain)
            return self._managed_by(inner, managers)
        if is_manager(plain):
            return Wrapped("managed", self.lift(inspect.unwrap(plain, stop=is_inner)))
        node = self._definitions.of(plain)
        if node is None:
            return Host(found)
        file = plain.__code__.co_filename
        module = self._module_of(plain.__module__, file, plain.__globals__)
        scope = self.cells.around(plain, file, module)
        defaults = tuple(self.lift(value) for value in plain.__defaults__ or ())
        keywords = {name: self.lift(v) for name, v in (plain.__kwdefaults__ or {}).items()}
        owner = self.lift(_own_class(plain)) if _own_class(plain) is not None else None
        made: Value = Function(
            node, plain.__name__, scope, defaults, keywords,
            owner if isinstance(owner, Class) else None, found,
        )  # fmt: skip
        made = self._managed_by(made, managers)
        self.lifted[id(found)] = (found, made)  # a function may be among its own cells
        self.cells.fill(plain)
        return made

    def _class(self, found: type) -> Value:
        if is_standard(found) or not self._has_source(found):
            return Host(found)
        return self._from_source(found)

    def _from_source(self, found: type) -> Value:
        module = self._module_of(found.__module__, _file_of(found), _globals_of(found))
        bases = tuple(
            self.as_base(self.lift(base)) for base in found.__bases__ if base is not object
        )
        known = self.lifted.get(id(found))
        if known is not None and isinstance(known[1], Class):  # a base has it as an attribute
            return known[1]
        cls = Class(self.heap.new({}), found.__name__, bases, module, host=found)
        if is_standard(found):
            self._mixins[found] = cls
        else:
            self.lifted[id(found)] = (found, cls)
        content = self.heap[cls]
        for name, item in vars(found).items():
            if name == "__init__" and _is_generated(item) and "__dataclass_fields__" in vars(found):
                content[name] = Generated(cls)
            elif not _is_hidden(name) and not _is_generated(item):
                content[name] = self._member(item, cls)
        if issubclass(found, tuple) and hasattr(found, "_fields"):
            defaults = getattr(found, "_field_defaults", {})
            fields = [
                (n, self.lift(defaults[n]) if n in defaults else MISSING) for n in found._fields
            ]
            cls.fields.extend(fields)
            cls.flags.update(("dataclass", "named tuple"))
            for name, _ in fields:
                content.pop(name, None)
            content.pop("__new__", None)
        own = vars(found)
        if "__eq__" in own and not issubclass(found, tuple):
            cls.flags.add("by value")
        for name, info in getattr(found, "__dataclass_fields__", {}).items():
            if info._field_type is dataclasses._FIELD:  # type: ignore[attr-defined]
                cls.fields.append((name, self._default(info)))
                cls.settings[name] = {"init": info.init, "kw_only": info.kw_only is True}
                cls.flags.add("dataclass")
        if getattr(own.get("__dataclass_params__"), "frozen", False):
            cls.flags.add("frozen")
        return cls

    def as_base(self, base: Value) -> Value:
        """Return a class as a base: of mixins of the standard library the source is followed."""
        found = base.object if isinstance(base, Host) else None
        if (program := base_in_python(found)) is not None:
            return self.lift(program)
        if not isinstance(found, type) or found.__module__ not in MIXINS or found is dict:
            return base
        if isinstance(found, abc.ABCMeta) or found.__name__.startswith("User"):
            if found not in self._mixins:
                self._mixins[found] = self._from_source(found)
            return self._mixins[found]
        return base

    def _default(self, info: dataclasses.Field[Any]) -> Value:
        """Return the value of a field of a dataclass where it is not given."""
        if info.default is not dataclasses.MISSING:
            return self.lift(info.default)
        if info.default_factory is not dataclasses.MISSING:
            return Wrapped("factory", self.lift(info.default_factory))
        return MISSING

    def _member(self, item: Any, cls: Class) -> Value:
        value = self.lift(item)
        if isinstance(value, Function) and value.owner is None:
            return replace(value, owner=cls)
        if (
            isinstance(value, Wrapped)
            and isinstance(value.function, Function)
            and value.function.owner is None
        ):
            return replace(value, function=replace(value.function, owner=cls))
        return value

    @staticmethod
    def _has_source(found: type) -> bool:
        return _file_of(found).endswith(".py") or bool(linecache.getlines(_file_of(found)))

    def _object(self, found: Any) -> Value:
        cls = self.lift(type(found))
        known = self.lifted.get(id(found))
        if known is not None and known[0] is found:  # its class has it, as a member
            return known[1]
        if isinstance(cls, Class):
            return Instance(self.heap.new({}), cls, found)
        if type(found).__name__ == "device":
            return Device(str(found))
        return Host(found)

    def host_attribute(self, host: Any, name: str) -> Value:
        """Return an attribute of the real object behind an instance, not of its class."""
        own = getattr(host, "__dict__", {})
        for names in (own, own.get("_parameters"), own.get("_buffers"), own.get("_modules")):
            if names is not None and name in names:
                return self.lift(names[name])
        if any(name in _slots(cls) and hasattr(host, name) for cls in type(host).__mro__):
            return self.lift(getattr(host, name))
        return MISSING


def _slots(cls: type) -> tuple[str, ...]:
    """Return the names of the attributes that a class keeps outside a dictionary."""
    found = cls.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(found)


_NO_CODE = (lambda: None).__code__


# Modules of the standard library whose classes are bases of others.
def _own_class(found: types.FunctionType) -> Any:
    """Return the class in whose body a function stands that says ``super()``; else None."""
    if "__class__" not in found.__code__.co_freevars:
        return None
    try:
        cell = (found.__closure__ or ())[found.__code__.co_freevars.index("__class__")]
        return cell.cell_contents
    except (ValueError, IndexError):
        return None


def _file_of(found: type) -> str:
    """Return the file of a class, or the cell of a notebook that it comes from; empty if none."""
    file = getattr(sys.modules.get(found.__module__), "__file__", None) or ""
    if file.endswith(".py") and found.__module__ != "__main__":
        return file
    method = _own_method(found)
    return file if method is None else str(method.__code__.co_filename)


def _own_method(found: type) -> types.FunctionType | None:
    """Return a method that stands in the body of a class; None if there is none."""
    for item in vars(found).values():
        plain = inspect.unwrap(item) if isinstance(item, types.FunctionType) else item
        if (
            isinstance(plain, types.FunctionType)
            and not _is_generated(plain)
            and plain.__qualname__ == f"{found.__qualname__}.{plain.__name__}"
        ):
            return plain
    return None


def _globals_of(found: type) -> dict[str, Any]:
    """Return the globals of the code of a class, whose module need not be an imported one."""
    method = _own_method(found)
    if method is not None and method.__module__ == found.__module__:
        return method.__globals__
    return vars(sys.modules[found.__module__]) if found.__module__ in sys.modules else {}


def _has(found: Any, name: str) -> bool:
    """Whether a real object has an attribute; its ``__getattr__``, which may do anything, aside."""
    return inspect.getattr_static(found, name, None) is not None


def _original(found: Any) -> Any:
    """Return what a compiler was given that made an object; other objects as they are."""
    if hasattr(type(found), "__hagane_original__"):  # hagane.compile
        return found.__hagane_original__
    if isinstance(found, types.FunctionType):  # torch.compile
        return vars(found).get("_torchdynamo_orig_callable", found)
    if type(found).__name__ == "OptimizedModule" and hasattr(found, "_orig_mod"):
        return found._orig_mod
    return found


def _is_scripted(found: Any) -> bool:
    """Whether ``torch.jit.script`` made an object of a function with source.

    ``torch.jit.trace`` keeps its function too, of which it recorded one path.
    """
    if not _has(found, "_torchdynamo_inline") or not _has(found, "qualified_name"):
        return False
    inner = found._torchdynamo_inline
    if not isinstance(inner, types.FunctionType):
        return False
    scripted = sys.modules["torch"].jit._state._try_get_jit_cached_function(inner)
    return scripted is not None and bool(scripted.qualified_name == found.qualified_name)


def _is_user(file: str) -> bool:
    """Whether a file belongs to the user rather than to an installed package or Python itself."""
    if file.startswith("<"):  # of code that was written while running
        return file.startswith(("<ipython-input-", "<python-input-"))
    if "site-packages" in file or "dist-packages" in file:
        return False
    return not file.startswith((sys.base_prefix + "/lib/python", *_standard_folders()))


def _standard_folders() -> tuple[str, ...]:
    return (str(Path(inspect.__file__).parent),)


def is_standard(found: Any) -> bool:
    """Whether a function or class belongs to Python's own library.

    A wrapper around an object of that, such as one around a functools.partial, takes over its name.
    """
    scope = getattr(found, "__globals__", None)  # of a class of functions no names, but a member
    own = scope.get("__name__") if isinstance(scope, dict) else None
    names = [found.__module__, found.__module__ if own is None else own]
    return all((name or "").partition(".")[0] in STANDARD for name in names)


def _is_generated(found: Any) -> bool:
    """Whether a dataclass made a method itself: the interpreter knows its meaning."""
    code = getattr(inspect.unwrap(found) if callable(found) else found, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _is_hidden(name: str) -> bool:
    return name in (
        "__dict__", "__weakref__", "__module__", "__doc__", "__annotations__",
        "__abstractmethods__", "_abc_impl", "__dataclass_fields__", "__dataclass_params__",
        "__subclasshook__", "__class_getitem__",
        "__orig_bases__", "__parameters__", "__static_attributes__", "__firstlineno__",
    )  # fmt: skip
