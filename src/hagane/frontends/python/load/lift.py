"""Real objects of the running Python as values of the program."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import numpy as np

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.running import Observer
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.load.modules import SourceError, parse_file
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Class,
    Device,
    Frame,
    Function,
    Host,
    Instance,
    Library,
    ModuleRef,
    Tensor,
    Value,
    Wrapped,
    is_plain,
)
from hagane.symbolic import Expr

_ABSTRACT = (Tensor, Expr, Instance, Function, Class, Library)


class Lift(Core):
    """Finds what stands for a real object: known values, library names, source to interpret."""

    tables: Tables
    observer: Observer

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        # What stands for real objects, by their identity, with the objects.
        self.lifted: dict[int, tuple[Any, Value]] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def lift(self, found: Any) -> Value:
        """Return what stands for a real object."""
        if isinstance(found, _ABSTRACT) or (is_plain(found) and not isinstance(found, tuple)):
            return found
        known = self.lifted.get(id(found))
        if known is not None and known[0] is found:
            return known[1]
        value = self._lift(found)
        self.lifted[id(found)] = (found, value)
        self.observer.lifted(found, value)
        return value

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
        match found:
            case list():
                return self.new_list([self.lift(item) for item in found])
            case tuple():
                return tuple(self.lift(item) for item in found)
            case dict():
                return self.new_dict({key: self.lift(item) for key, item in found.items()})
            case set():
                return self.new_set([self.lift(item) for item in found])
            case np.ndarray() | np.generic():
                return self.tables.lift_array(self, np.asarray(found), "numpy.ndarray")
            case types.ModuleType():
                return self._module(found)
            case types.FunctionType():
                return Host(found) if is_standard(found) else self.lift_function(found)
            case types.MethodType():
                return Bound(self.lift(found.__func__), self.lift(found.__self__))
            case property():
                return Wrapped("property", self.lift(found.fget))
            case staticmethod() | classmethod():
                return Wrapped(type(found).__name__, self.lift(found.__func__))
            case type():
                return self._class(found)
        return self._object(found)

    def _module(self, found: types.ModuleType) -> Value:
        if self.tables.knows(found.__name__):
            return Library(found.__name__)
        file = getattr(found, "__file__", None)
        if file is None or not _is_user(file):
            return Host(found)
        return self._module_of(found.__name__, file, vars(found))

    def _module_of(self, name: str, file: str, names: dict[str, Any]) -> ModuleRef:
        key = f"host:{file}"
        if key not in self.modules:
            self.modules[key] = ModuleRef(self.heap.new({}), name, file, names, _is_user(file))
        return self.modules[key]

    def lift_function(self, found: types.FunctionType) -> Value:
        """Return what stands for a function: its source, or the function itself."""
        plain = inspect.unwrap(found)  # out of decorators such as torch.no_grad()
        if not isinstance(plain, types.FunctionType):
            return Host(found)
        node = self._definition(plain)
        if node is None:
            return Host(found)
        file = plain.__code__.co_filename
        module = self._module_of(plain.__module__, file, plain.__globals__)
        names: dict[str, Value] = {}
        scope = Frame(self.heap.new(names), file, module, None, module.is_user)
        defaults = tuple(self.lift(value) for value in plain.__defaults__ or ())
        keywords = {name: self.lift(v) for name, v in (plain.__kwdefaults__ or {}).items()}
        made = Function(node, plain.__name__, scope, defaults, keywords)
        self.lifted[id(found)] = (found, made)  # a function may be among its own cells
        for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=False):
            if name != "__class__":
                try:
                    names[name] = self.lift(cell.cell_contents)
                except ValueError:  # not set yet
                    continue
        return made

    def _definition(
        self, found: types.FunctionType
    ) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """Return the syntax tree of a function, with the lines of its file."""
        code = found.__code__
        tree = self._tree(code.co_filename)
        if tree is None:
            return self._definition_from_text(found)
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda):
                if code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
                    return node
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if node.name == code.co_name and code.co_firstlineno in (first, node.lineno):
                    return node
        return None

    def _definition_from_text(self, found: types.FunctionType) -> ast.FunctionDef | None:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
        except (OSError, TypeError, SyntaxError):
            return None
        node = tree.body[0] if tree.body else None
        if not isinstance(node, ast.FunctionDef):
            return None
        ast.increment_lineno(node, found.__code__.co_firstlineno - 1)
        return node

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            try:
                self._trees[file] = parse_file(Path(file))
            except SourceError:
                self._trees[file] = None
        return self._trees[file]

    def _class(self, found: type) -> Value:
        if is_standard(found) or not self._has_source(found):
            return Host(found)
        module = self._module_of(
            found.__module__, _file_of(found), vars(sys.modules[found.__module__])
        )
        bases = tuple(self.lift(base) for base in found.__bases__ if base is not object)
        cls = Class(self.heap.new({}), found.__name__, bases, module)
        self.lifted[id(found)] = (found, cls)
        content = self.heap[cls]
        for name, item in vars(found).items():
            if not _is_hidden(name) and not _is_generated(item):
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
        for name, info in getattr(found, "__dataclass_fields__", {}).items():
            default = info.default
            cls.fields.append(
                (name, MISSING if type(default).__name__ == "_MISSING_TYPE" else self.lift(default))
            )
            cls.flags.add("dataclass")
        return cls

    def _member(self, item: Any, cls: Class) -> Value:
        value = self.lift(item)
        if isinstance(value, Function):
            return Function(
                value.node, value.name, value.scope, value.defaults, value.keyword_defaults, cls
            )
        if isinstance(value, Wrapped) and isinstance(value.function, Function):
            inner = value.function
            owned = Function(
                inner.node, inner.name, inner.scope, inner.defaults, inner.keyword_defaults, cls
            )
            return Wrapped(value.kind, owned)
        return value

    @staticmethod
    def _has_source(found: type) -> bool:
        return _file_of(found).endswith(".py") or bool(linecache.getlines(_file_of(found)))

    def _object(self, found: Any) -> Value:
        cls = self.lift(type(found))
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
        if name in getattr(type(host), "__slots__", ()):
            return self.lift(getattr(host, name))
        return MISSING


def _file_of(found: type) -> str:
    """Return the file of a class, or the cell of a notebook that it comes from; empty if none."""
    file = getattr(sys.modules.get(found.__module__), "__file__", None) or ""
    if file.endswith(".py") and found.__module__ != "__main__":
        return file
    codes = [item.__code__ for item in vars(found).values() if isinstance(item, types.FunctionType)]
    return codes[0].co_filename if codes else file


def _is_user(file: str) -> bool:
    """Whether a file belongs to the user rather than to an installed package or Python itself."""
    if "site-packages" in file or "dist-packages" in file or file.startswith("<"):
        return False
    return not file.startswith((sys.base_prefix + "/lib/python", *_standard_folders()))


def _standard_folders() -> tuple[str, ...]:
    return (str(Path(inspect.__file__).parent),)


def is_standard(found: Any) -> bool:
    """Whether a function or class belongs to Python's own library."""
    return (found.__module__ or "").partition(".")[0] in sys.stdlib_module_names


def _is_generated(found: Any) -> bool:
    """Whether a dataclass made a method itself: the interpreter knows what it does."""
    code = getattr(inspect.unwrap(found) if callable(found) else found, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _is_hidden(name: str) -> bool:
    return name in (
        "__dict__", "__weakref__", "__module__", "__doc__", "__annotations__",
        "__abstractmethods__", "_abc_impl", "__dataclass_fields__", "__dataclass_params__",
        "__init_subclass__", "__subclasshook__", "__class_getitem__", "__match_args__",
        "__orig_bases__", "__parameters__", "__static_attributes__", "__firstlineno__",
    )  # fmt: skip
