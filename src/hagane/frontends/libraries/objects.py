"""Objects: the classes they derive from, their members, their calls."""

from __future__ import annotations

import enum
import functools
import sys
import types
import weakref
from collections import Counter, OrderedDict, abc, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.frontends.libraries.names.left_out import LEFT_OUT
from hagane.frontends.libraries.naming import Names, real_named
from hagane.frontends.libraries.torch.members import refuse_member
from hagane.frontends.python.interpret.setting.metaclasses import asks_metaclass
from hagane.frontends.python.values.deques import Deque
from hagane.frontends.python.values.members import Member
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Wrapped,
    is_enumeration,
)
from hagane.frontends.python.values.open_tuples import OpenTuple
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import (
    MISSING,
    Device,
    DictRef,
    DType,
    Fields,
    Host,
    Library,
    LibraryMethod,
    ListRef,
    Range,
    Real,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
)
from hagane.symbolic import Expr

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.core import Core

_PYTHON = {
    int: (int, Expr, Truth), float: (float, Real), bool: (bool, Truth), str: (str,),
    list: (ListRef,), dict: (DictRef,), set: (SetRef,), tuple: (tuple,), type(None): (type(None),),
    bytes: (bytes,), range: (range, Range), slice: (slice,), type: (Class, Library),
}  # fmt: skip


_CLASSES: dict[type, type] = {
    Deque: deque, OpenTuple: tuple, ListRef: list, SetRef: set, Expr: int, Real: float, Truth: bool,
    Range: range, Function: types.FunctionType, Bound: types.MethodType, Class: type,
}  # fmt: skip
# Modules whose functions give objects another class.
_CHANGING = "torch.distributed."
# Special methods that a class of which nothing is known may have.
_OF_STRANGERS = (
    "__call__", "__contains__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__",
    "__next__", "__setitem__",
)  # fmt: skip
# Classes of collections.abc that ask for methods alone.
_OF_ABSTRACT: dict[Any, tuple[str, ...]] = {
    abc.Iterable: ("__iter__",), abc.Iterator: ("__iter__", "__next__"), abc.Sized: ("__len__",),
    abc.Container: ("__contains__",), abc.Reversible: ("__iter__", "__reversed__"),
    abc.Collection: ("__len__", "__iter__", "__contains__"), abc.Callable: ("__call__",),
}  # fmt: skip
_NUMBERS = (int, float, Expr, Real, Truth)


class Objects(Names):
    """Objects of libraries' classes, and of classes that derive from them."""

    def class_flags(self, base: Library | Host) -> set[str]:
        """Return the effect of deriving from a class."""
        real = base.object if isinstance(base, Host) else None
        if isinstance(real, type) and issubclass(real, enum.Enum):
            flags = issubclass(real, enum.Flag) and not issubclass(real, int)
            return {"enum", "flag"} if flags else {"enum"}
        if isinstance(base, Host) and getattr(base.object, "__name__", "") == "NamedTuple":
            return {"dataclass", "named tuple"}
        return set()

    def ancestors(self, library: Library) -> list[Value]:
        """Return the classes of a library that one of its classes derives from, nearest first."""
        table = self.table_of(library.name)
        found: list[Value] = []
        name = library.name
        while table is not None and (name := table.bases.get(name, "")):
            found.append(Library(name))
        return found

    def prepare(self, core: Core, made: Instance, library: Library) -> None:
        """Give a new object of a derived class its base's attributes of before ``__init__``."""
        table = self.table_of(library.name)
        if table is not None and self._inherits(table, library.name, "torch.nn.Module"):
            core.heap[made]["training"] = True

    def libraries_of(self, core: Core, value: Instance) -> list[str]:
        """Return the classes of libraries that an object derives from, nearest first."""
        cls = value.cls
        order = [cls] if isinstance(cls, Library) else core.resolution_order(cls)
        names = []
        for base in order:
            name = base.name if isinstance(base, Library) else ""
            table = self.table_of(name) if name else None
            while name and table is not None:
                if name not in names:
                    names.append(name)
                name = table.bases.get(name, "")
        return names

    def object_attribute(self, core: Core, value: Instance, name: str) -> Value:
        """Return an object's member by its library's classes, ``MISSING`` without one."""
        for owner in self.libraries_of(core, value):
            table = self.tables[owner.partition(".")[0]]
            layer = table.layers.get(owner)
            if (
                layer is not None
                and name != "init"
                and (name in vars(layer) or (name == "__init__" and hasattr(layer, "init")))
            ):
                return LibraryMethod(value, f"{owner}.{name}")
            computed = table.attributes.get(owner, {}).get(name)
            if computed is not None:
                return core.wrap(computed(core, value))
            if name in table.methods.get(owner, {}):
                return LibraryMethod(value, f"{owner}.{name}")
        inner = core.heap[value].get("_modules")
        if isinstance(inner, DictRef) and name in core.heap[inner]:
            return core.heap[inner][name]
        for owner in self.libraries_of(core, value):
            if name in LEFT_OUT.get(owner, ()):
                return core.lost(f"'{owner}.{name}' is not understood")
        if name.startswith("__") and name not in _OF_STRANGERS:
            return MISSING
        base = self.stranger_of(core, value)
        return MISSING if base is None else self.unread(core, f"{base}.{name}")

    def stranger_of(self, core: Core, value: Instance) -> str | None:
        """Return the first class of a library among an object's bases that no table knows."""
        if not isinstance(value.cls, Class):
            return None
        for base in core.resolution_order(value.cls):
            if isinstance(base, Library) and not self.describes(base.name):
                return base.name
        return None

    def keep_member(self, core: Core, receiver: Instance, name: str, value: Value) -> bool:
        """Store a module that is set as an attribute of a container among its modules."""
        if not core.emit.builds:
            refuse_member(self, core, receiver, name, value)
        inner = core.heap[receiver].get("_modules")
        if not isinstance(inner, DictRef) or not isinstance(value, Instance):
            return False
        if not self.libraries_of(core, value):
            return False
        core.heap[inner][name] = value
        return True

    def call_order(self, core: Core, value: Instance) -> Sequence[str]:
        """Return the methods that a call of an object means, the first that exists counts."""
        names = self.libraries_of(core, value)
        own = _has_own_call(core, value)
        if any(name.startswith("torch.") for name in names):
            return ("__call__",) if own else ("forward", "__call__")
        if isinstance(value.cls, Class) and not own:
            return ("forward", "__call__")
        return ("__call__", "forward")

    def call_forward(
        self,
        core: Core,
        value: Instance,
        method: Value,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Value:
        """Call the method that a call of an object means, between the hooks of a module."""
        names = self.libraries_of(core, value)
        hooks = getattr(value.host, "_local_link_hooks", None)
        if hooks and core.emit.builds:
            core.fail(
                "capture",
                f"the {type(value.host).__name__} has a hook ({', '.join(hooks)}), which is not "
                "followed; delete_hook() removes it",
            )
        if "torch.nn.Module" not in names or _has_own_call(core, value):
            return core.call(method, arguments, keywords)
        from hagane.frontends.libraries.torch.training.hooks import run

        return run(core, value, method, arguments, keywords)

    def entered(self, core: Core, manager: Value) -> Value:
        """Enter a context manager of a library and return its value."""
        if isinstance(manager, Instance):
            enter = self.object_attribute(core, manager, "__enter__")
            if enter is not MISSING:
                return core.call(enter, [], {})
        return manager

    def left(self, core: Core, manager: Value) -> None:
        """Leave a context manager of a library."""
        if isinstance(manager, Instance):
            leave = self.object_attribute(core, manager, "__exit__")
            if leave is not MISSING:
                core.call(leave, [None, None, None], {})

    def is_instance(self, core: Core, value: Value, option: Value) -> bool | None:
        """Return the result of ``isinstance``; None where nobody can tell."""
        if isinstance(value, Unknown) or isinstance(option, Unknown):
            return None
        if isinstance(value, Member) and self.is_instance(core, value.instance, option):
            return True
        if core.emit.builds and isinstance(value, Tensor) and value.kind == "numpy.ndarray":
            kind = value.dtype.numpy().type if self.is_scalar(value) else np.ndarray
            asked = _class_of_numpy(option)
            if asked is not None:
                return issubclass(kind, asked)
        if core.emit.builds and isinstance(option, DType) and isinstance(value, _NUMBERS):
            return False  # Python's own
        if isinstance(option, Class) and core.emit.builds and asks_metaclass(option):
            return None
        if isinstance(option, Class):
            real = value.host if isinstance(value, Class) else value
            if isinstance(real, enum.Enum | type):  # an imported member or class, as it is
                return option.host is not None and isinstance(real, option.host)
            if not isinstance(value, Instance) or not isinstance(value.cls, Class):
                return False
            known = value.cls.host, option.host
            if None not in known and issubclass(*known):  # also by registration with an ABC
                return True
            return option in core.resolution_order(value.cls)
        if isinstance(option, Library):
            return self._is_library_instance(core, value, option.name)
        if isinstance(option, Host) and isinstance(option.object, type):
            methods = _OF_ABSTRACT.get(option.object)
            if methods is not None and isinstance(value, Instance):
                has = [core.method_of(value, name) is not MISSING for name in methods]
                if all(has):
                    return True
            if isinstance(value, Instance) and isinstance(value.cls, Class):
                return _derives(core, value.cls, option.object)
            return self._is_python_instance(value, option.object)
        return None

    def _is_library_instance(self, core: Core, value: Value, name: str) -> bool | None:
        if isinstance(value, Tensor):
            return name in _tensor_classes(value)
        if isinstance(value, Instance):
            if not self.describes(name) and (
                name.startswith(_CHANGING) or self.stranger_of(core, value) not in (None, name)
            ):
                return None  # its base may derive from it, or its class be changed
            return name in self.libraries_of(core, value) or name == self.stranger_of(core, value)
        if isinstance(value, DType):
            return name in ("torch.dtype", "numpy.dtype")
        if isinstance(value, Device):
            return name == "torch.device"
        return name == "torch.Size" and isinstance(value, Size)

    def _is_python_instance(self, value: Value, option: type) -> bool | None:
        if isinstance(value, Host):
            return isinstance(value.object, option)
        cls = self.class_of(value)
        if cls is not None:
            return issubclass(cls, option)
        if option in _PYTHON:
            return isinstance(value, _PYTHON[option])
        if option is object:
            return True
        name = option.__name__
        if name == "Callable":
            return isinstance(value, Function | Bound | Wrapped | Class | Library)
        return name in ("Iterable", "Iterator") and isinstance(value, Stream)

    def class_of(self, value: Value) -> type | None:
        """Return the class of Python's that a value is of; None for objects of other classes."""
        if isinstance(value, Wrapped):
            made = {"partial": functools.partial, "property": property, "reference": weakref.ref,
                    "staticmethod": staticmethod, "classmethod": classmethod}  # fmt: skip
            return made.get(value.kind, types.FunctionType)
        if isinstance(value, DictRef):
            kinds = {"OrderedDict": OrderedDict, "defaultdict": defaultdict, "Counter": Counter}
            return kinds.get(value.kind.partition(":")[0], dict)
        if isinstance(value, Tensor):
            torch = sys.modules.get("torch") if value.kind == "torch.Tensor" else None
            array = value.kind == "numpy.ndarray"
            return torch.Tensor if torch is not None else np.ndarray if array else None
        if isinstance(value, Fields):
            return value.real or tuple
        if is_plain(value) or isinstance(value, tuple | slice | frozenset):
            return type(value)
        if isinstance(value, Class):
            own = enum.EnumMeta if is_enumeration(value) else type
            return own if value.host is None else type(value.host)
        return next((cls for known, cls in _CLASSES.items() if isinstance(value, known)), None)

    def has_special(self, value: Value, name: str) -> bool:
        """Whether a value has a special attribute (``__doc__``) by the class that it is of."""
        if isinstance(value, Library):
            return hasattr(real_named(value.name), name)
        if isinstance(value, Class):
            return hasattr(object if value.host is None else value.host, name)
        kind = type(value.host) if isinstance(value, Instance) else self.class_of(value)
        if kind is None or (isinstance(value, Instance) and value.host is None):
            return name in vars(object) or name in ("__dict__", "__module__", "__weakref__")
        return any(name in vars(cls) for cls in kind.__mro__)

    def real_object(self, value: Value) -> Any:
        """Return what a name of a library is in the running Python; None where that is unknown."""
        if isinstance(value, Host):
            return value.object
        if isinstance(value, DType):
            return value.dtype.numpy().type
        return real_named(value.name) if isinstance(value, Library) else None

    def is_scalar(self, value: Value) -> bool:
        """Whether a value is a scalar of NumPy, which most functions return for no axes."""
        return isinstance(value, Tensor) and value.kind == "numpy.ndarray" and value.shape == ()


def _has_own_call(core: Core, value: Instance) -> bool:
    """Whether a class of the program says what a call of an object means."""
    return isinstance(value.cls, Class) and core.find_in_class(value.cls, "__call__") is not MISSING


def _class_of_numpy(option: Value) -> type | None:
    """Return the class that a scalar or an array of NumPy may be of; None for others."""
    if isinstance(option, DType):
        return option.dtype.numpy().type
    found = option.object if isinstance(option, Host) else None
    if isinstance(option, Library) and option.name.startswith("numpy."):
        found = getattr(np, option.name.removeprefix("numpy."), None)
    return found if isinstance(found, type) else None


def _derives(core: Core, cls: Class, option: type) -> bool:
    """Whether a class of the program derives from one of Python's own."""
    if cls.host is not None:
        return issubclass(cls.host, option)
    real = [base.object for base in core.resolution_order(cls) if isinstance(base, Host)]
    mixed = [b.host for b in core.resolution_order(cls) if isinstance(b, Class) and b.host]
    found = any(isinstance(base, type) and issubclass(base, option) for base in (*real, *mixed))
    return found or option is object or (option.__name__ == "Callable" and _is_callable(core, cls))


def _is_callable(core: Core, cls: Class) -> bool:
    return core.find_in_class(cls, "__call__") is not MISSING


def _tensor_classes(value: Tensor) -> tuple[str, ...]:
    if value.kind == "torch.Tensor":
        from hagane.frontends.libraries.torch.operands import TENSOR_CLASSES

        extra = ("torch.nn.Parameter", "torch.nn.parameter.Parameter") if value.parameter else ()
        dtype = value.dtype
        of_type = (f"torch.{name}" for name, known in TENSOR_CLASSES.items() if known == dtype)
        return ("torch.Tensor", *of_type, *extra)
    if value.kind == "chainer.Variable":
        return (
            ("chainer.Variable", "chainer.Parameter") if value.parameter else ("chainer.Variable",)
        )
    return (value.kind, "numpy.generic") if value.shape == () else (value.kind,)


__all__ = ["Objects"]
