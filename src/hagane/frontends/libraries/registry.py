"""All libraries' tables, asked by name."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Choice,
    Class,
    Device,
    DictRef,
    DType,
    Function,
    Host,
    Instance,
    Library,
    LibraryMethod,
    ListRef,
    Many,
    Range,
    Real,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    Wrapped,
    identity,
)
from hagane.graph.types import dtype_name
from hagane.symbolic import Expr

if TYPE_CHECKING:
    from hagane.frontends.libraries.table import Table
    from hagane.frontends.python.interpret.core import Core

# Packages that are never imported or interpreted, only known by name.
_ROOTS = (
    "torch", "torchvision", "numpy", "chainer", "chainermn", "cupy", "jaxtyping", "hagane",
    "beartype", "typeguard", "einops", "tqdm", "matplotlib", "tensorboard", "tensorboardX",
    "wandb",
)  # fmt: skip
# Those that only draw, keep or send values; their results come from outside of the program.
_OUTSIDE = ("matplotlib", "tensorboard", "tensorboardX", "wandb")
_SETTINGS = ("wandb.config", "wandb.run", "wandb.summary")
_RECORDS = ("tqdm", *_OUTSIDE, "torch.utils.tensorboard")
# Those whose real modules are read from their source all the same, where a real model leads there.
_READ = ("torchvision",)
# Functions that the interpreter itself knows, because they take functions or decide branches.
_SPECIAL = ("torch._assert", "torch.utils.checkpoint.checkpoint")
_PYTHON = {
    int: (int, Expr), float: (float, Real), bool: (bool, Truth), str: (str,), list: (ListRef,),
    dict: (DictRef,), set: (SetRef,), tuple: (tuple,), type(None): (type(None),),
    bytes: (bytes,), range: (range, Range), slice: (slice,), type: (Class, Library),
}  # fmt: skip


class LibraryTables:
    """The tables of all libraries."""

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by root name; loaded when they are first needed."""
        from hagane.frontends.libraries import everything

        return everything.TABLES

    @cached_property
    def by_tensor(self) -> dict[str, Table]:
        """The tables by the class of their tensors."""
        return {table.tensor: table for table in self.tables.values()}

    def table_of(self, name: str) -> Table | None:
        """Return the table that a dotted name belongs to."""
        return self.tables.get(name.partition(".")[0])

    @cached_property
    def _successors(self) -> dict[str, str]:
        """Chainer's names by hagane's names of the same."""
        table = self.tables.get("chainer")
        if table is None:  # probabilities know NumPy alone
            return {}
        known = {*table.functions, *table.layers, *table.names, *table.constants}
        known |= {*table.transparent, *table.bases.values(), table.tensor}
        for name in [*known]:
            while "." in name:
                name = name.rpartition(".")[0]
                known.add(name)
        return {f"hagane{name.removeprefix('chainer')}": name for name in known - {"chainer"}}

    def _canonical(self, name: str) -> str:
        """Return a table's name for one in an inner module, and for hagane's namesake of it."""
        root, *rest = name.split(".")
        table = self.tables.get(root)
        if root != "hagane" and table is not None and len(rest) > 2:
            return table.outer_name(name)
        if root != "hagane":
            return name
        name = name.replace("hagane.nn.functions", "hagane.functions", 1)
        return self._successors.get(name, name)

    def knows(self, name: str) -> bool:
        """Whether a module is known by its name alone."""
        return name.partition(".")[0] in _ROOTS

    def reads(self, name: str) -> bool:
        """Whether a real module is read from its source."""
        return name.partition(".")[0] in _READ or not self.knows(name)

    def records(self, name: str) -> bool:
        """Whether a call of a name only shows or keeps values, unknown ones too."""
        return _is_within(name, _RECORDS)

    def arguments(self, name: str) -> dict[str, bool] | None:
        """Return a function's arguments and whether each has to be given; None if not known."""
        from hagane.frontends.libraries.table import arguments_of

        table = self.table_of(name)
        found = None if table is None else table.functions.get(name)
        return None if found is None else arguments_of(found)

    # Names.

    def member(self, core: Core, library: Library, name: str) -> Value:
        """Return the meaning of a dotted name."""
        whole = self._canonical(f"{library.name}.{name}")
        if _is_within(whole, _SETTINGS):
            return core.outside(f"'{whole}'")
        table = self.table_of(whole)
        if table is not None and whole in table.constants:
            return table.constants[whole]
        if table is not None and whole in table.names:
            return table.names[whole][0](core)
        if name.startswith("__") and name.endswith("__") and table is not None:
            return whole.rpartition(".")[0].rpartition(".")[2] if name == "__name__" else MISSING
        return Library(whole)

    def set_member(self, core: Core, library: Library, name: str, value: Value) -> None:
        """Set a name of a library that the program can change; others are left alone."""
        whole = self._canonical(f"{library.name}.{name}")
        table = self.table_of(whole)
        if table is not None and whole in table.names:
            table.names[whole][1](core, value)

    def is_class_method(self, library: Library, name: str) -> bool:
        """Whether a name of a library's class is a method that gets the class."""
        table = self.table_of(library.name)
        layer = None if table is None else table.layers.get(library.name)
        return name in getattr(layer, "CLASS_METHODS", ())

    def constant_attribute(self, value: DType | Device, name: str) -> Value:
        """Return an attribute of an element type or a device."""
        if isinstance(value, DType):
            found = value.dtype
            return {
                "is_floating_point": found.is_floating_point(),
                "itemsize": found.itemsize,
                "name": dtype_name(found),
                "kind": _kind(found),
                "type": value,
            }.get(name, MISSING)
        kind, _, index = value.name.partition(":")
        return {"type": kind, "index": int(index) if index else None}.get(name, MISSING)

    def is_transparent(self, name: str) -> bool:
        """Whether a decorator changes no type."""
        table = self.table_of(name)
        root = name.partition(".")[0]
        return root in ("jaxtyping", "beartype", "typeguard") or (
            table is not None and name in table.transparent
        )

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

    def class_flags(self, base: Library | Host) -> set[str]:
        """Return the effect of deriving from a class."""
        real = base.object if isinstance(base, Host) else None
        if isinstance(real, type) and issubclass(real, enum.Enum):
            return {"enum"}
        if isinstance(base, Host) and getattr(base.object, "__name__", "") == "NamedTuple":
            return {"dataclass", "named tuple"}
        return set()

    # Tensors.

    def _of(self, tensor: Tensor) -> Table:
        return self.by_tensor[tensor.kind]

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        table = self._of(value)
        computed = table.attributes.get(value.kind, {}).get(name)
        if computed is not None:
            core.emit.kind = value.kind
            return core.wrap(computed(core, value))
        if name in table.methods.get(value.kind, {}):
            return LibraryMethod(value, f"{value.kind}.{name}")
        if _is_real_attribute(value.kind, name):
            return core.lost(f"'{value.kind}.{name}' is not understood")
        return MISSING

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kinds = [v.kind for v in (left, right) if isinstance(v, Tensor)]
        # A library's own tensors take arrays of NumPy along.
        kind = next((k for k in kinds if k != "numpy.ndarray"), kinds[0])
        core.emit.kind = kind
        run = self.by_tensor[kind].operator
        assert run is not None
        return self._in_context(
            core, f"{kind}.{name}", (left, right), {}, lambda a, _: run(core, name, a[0], a[1])
        )

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        core.emit.kind = value.kind
        run = self._of(value).unary
        assert run is not None
        return run(core, name, value)

    def tensor_item(self, core: Core, value: Tensor, index: Value) -> Value:
        """Return ``value[index]``."""
        core.emit.kind = value.kind
        run = self._of(value).item
        assert run is not None
        return run(core, value, index)

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Do ``value[index] = item``."""
        run = self._of(value).set_item
        assert run is not None
        run(core, value, index, item)

    # Functions and layers.

    def call(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library."""
        from hagane.frontends.libraries.table import call_handler

        table = self.table_of(name)
        if table is not None:
            if table.operator is not None:  # a library with tensors of its own
                core.emit.kind = table.tensor
            if name in table.functions:
                return self._in_context(
                    core, name, arguments, keywords,
                    lambda a, k: call_handler(table.functions[name], name, core, a, k),
                )  # fmt: skip
            if name in table.layers:
                made = Instance(core.heap.new({}), Library(name))
                lost = self.initialise(core, made, Library(name), arguments, keywords)
                return made if lost is None else lost
            if name in table.transparent:
                return Host(identity) if not arguments else arguments[0]
            if self._is_unbound(core, table, name, arguments):
                return self.call_method(core, name, arguments, keywords)
        if self.is_transparent(name):
            return Host(identity)
        if _is_within(name, _OUTSIDE):
            return core.outside(f"what '{name}' gives")
        return core.lost(f"'{name}' is not understood")

    def _is_unbound(self, core: Core, table: Table, name: str, arguments: Sequence[Value]) -> bool:
        """Whether a name is a method of a layer that is called with an object of it first."""
        owner, _, method = name.rpartition(".")
        known = hasattr(table.layers.get(owner), method) or method in table.methods.get(owner, {})
        receiver = arguments[0] if arguments else None
        fits = isinstance(receiver, Instance) and owner in self.libraries_of(core, receiver)
        return known and fits

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        from hagane.frontends.libraries.table import View, call_handler

        table = self.table_of(name)
        assert table is not None
        owner, _, method = name.rpartition(".")
        if owner in table.layers and method not in table.methods.get(owner, {}):
            receiver = arguments[0]
            if method == "__init__":
                self.initialise(core, receiver, Library(owner), arguments[1:], keywords)
                return None
            handler = getattr(table.layers[owner], method)
            view = View(core, receiver)
            return view.decided(
                lambda: self._in_context(
                    core, name, arguments[1:], keywords,
                    lambda a, k: call_handler(handler, name, core, [view, *a], k, hidden=2),
                )
            )  # fmt: skip
        core.emit.kind = owner if owner == table.tensor else table.tensor
        found = table.methods[owner][method]
        return self._in_context(
            core, name, arguments, keywords,
            lambda a, k: call_handler(found, name, core, a, k, hidden=2),
        )  # fmt: skip

    def _in_context(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        run: Callable[[Sequence[Value], Mapping[str, Value]], Value],
    ) -> Value:  # fmt: skip
        """Call a function of tensors as the contexts around it have it (``torch.autocast``)."""
        variables = core.heap[core.variables]
        if not variables or not name.startswith("torch."):
            return run(arguments, keywords)
        from hagane.frontends.libraries.torch.training.casting import casted, result_of

        given, named, dtype = casted(core, name, arguments, keywords)
        return result_of(core, run(given, named), dtype)

    def prepare(self, core: Core, made: Instance, library: Library) -> None:
        """Give a new object of a derived class its base's attributes of before ``__init__``."""
        table = self.table_of(library.name)
        if table is not None and self._inherits(table, library.name, "torch.nn.Module"):
            core.heap[made]["training"] = True

    def _inherits(self, table: Table, name: str, base: str) -> bool:
        while name:
            if name == base:
                return True
            name = table.bases.get(name, "")
        return False

    def initialise(
        self,
        core: Core,
        made: Instance,
        library: Library,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> Unknown | None:
        """Run the ``__init__`` of a library's class; return the reason if its result is lost."""
        from hagane.frontends.libraries.table import call_handler

        table = self.table_of(library.name)
        layer = None if table is None else table.layers.get(library.name)
        self.prepare(core, made, library)
        if layer is None or not hasattr(layer, "init"):
            return None
        positional = [_whole(core, value) for value in arguments]
        named = {name: _whole(core, value) for name, value in keywords.items()}
        found = call_handler(layer.init, library.name, core, positional, named)
        if isinstance(found, Choice):
            lost = core.lost(f"a {library.name} whose settings only a run knows")
            core.heap[made].update(dict.fromkeys(_names_of(core, found), lost))
            return lost
        core.heap[made].update({name: core.wrap(value) for name, value in found.items()})
        return None

    def libraries_of(self, core: Core, value: Instance) -> list[str]:
        """Return the classes of libraries that an object derives from, nearest first."""
        cls = value.cls
        order = [cls] if isinstance(cls, Library) else core.resolution_order(cls)
        names = []
        for base in order:
            name = base.name if isinstance(base, Library) else ""
            table = self.table_of(name) if name else None
            while name and table is not None:
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
        if isinstance(inner, DictRef):
            return core.heap[inner].get(name, MISSING)
        return MISSING

    def call_order(self, core: Core, value: Instance) -> Sequence[str]:
        """Return the methods that a call of an object means, the first that exists counts."""
        names = self.libraries_of(core, value)
        if any(name.startswith("torch.") for name in names):
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
        if "torch.nn.Module" not in names:
            return core.call(method, arguments, keywords)
        from hagane.frontends.libraries.torch.training.hooks import run

        return run(core, value, method, arguments, keywords)

    def keep_member(self, core: Core, receiver: Instance, name: str, value: Value) -> bool:
        """Store a module that is set as an attribute of a container among its modules."""
        inner = core.heap[receiver].get("_modules")
        if not isinstance(inner, DictRef) or not isinstance(value, Instance):
            return False
        if not self.libraries_of(core, value):
            return False
        core.heap[inner][name] = value
        return True

    # Questions.

    def is_instance(self, core: Core, value: Value, option: Value) -> bool | None:
        """Return the result of ``isinstance``; None where nobody can tell."""
        if isinstance(value, Unknown) or isinstance(option, Unknown):
            return None
        if isinstance(option, Class):
            if not isinstance(value, Instance) or not isinstance(value.cls, Class):
                return False
            known = value.cls.host, option.host
            if None not in known and issubclass(*known):  # also by registration with an ABC
                return True
            return option in core.resolution_order(value.cls)
        if isinstance(option, Library):
            return self._is_library_instance(core, value, option.name)
        if isinstance(option, Host) and isinstance(option.object, type):
            if isinstance(value, Instance) and isinstance(value.cls, Class):
                return _derives(core, value.cls, option.object)
            return self._is_python_instance(value, option.object)
        return None

    def _is_library_instance(self, core: Core, value: Value, name: str) -> bool:
        if isinstance(value, Tensor):
            return name in _tensor_classes(value)
        if isinstance(value, Instance):
            return name in self.libraries_of(core, value)
        if isinstance(value, DType):
            return name in ("torch.dtype", "numpy.dtype")
        if isinstance(value, Device):
            return name == "torch.device"
        return name == "torch.Size" and isinstance(value, tuple)

    def _is_python_instance(self, value: Value, option: type) -> bool | None:
        if option in _PYTHON:
            found = isinstance(value, _PYTHON[option])
            return found or (isinstance(value, Host) and isinstance(value.object, option))
        if option is object:
            return True
        if isinstance(value, Host):
            return isinstance(value.object, option)
        name = option.__name__
        if name == "Callable":
            return isinstance(value, Function | Bound | Wrapped | Class | Library)
        containers = {"Sequence": (ListRef, tuple, str), "Mapping": (DictRef,),
                      "Iterable": (ListRef, tuple, str, DictRef, SetRef), "Number": (int, float),
                      "Integral": (int, Expr), "OrderedDict": (DictRef,)}  # fmt: skip
        return isinstance(value, containers[name]) if name in containers else False

    def is_scalar(self, value: Value) -> bool:
        """Whether a value is a scalar of NumPy, which most functions return for no axes."""
        return isinstance(value, Tensor) and value.kind == "numpy.ndarray" and value.shape == ()

    # Real objects.

    @cached_property
    def _real_names(self) -> dict[int, tuple[Any, str]]:
        names: dict[int, tuple[Any, str]] = {}
        for root, table in self.tables.items():
            if _module_of(root) is None:
                continue
            wanted = [*table.functions, *table.layers, *table.bases.values(), table.tensor]
            for name in [*wanted, *table.transparent, *_SPECIAL]:
                found = _resolve(name)
                if found is not None:
                    names.setdefault(id(found), (found, name))
        return names

    def name_of(self, found: Any) -> str | None:
        """Return the name under which a table knows a real function or class."""
        if not callable(found) or isinstance(found, Tensor):
            return None
        known = self._real_names.get(id(found))
        return known[1] if known is not None and known[0] is found else None

    def lift_object(self, core: Core, found: Any) -> Value:
        """Return the stand-in of a real tensor, layer, element type or device."""
        root = type(found).__module__.partition(".")[0]
        if "torch" in sys.modules and (
            root == "torch" or isinstance(found, sys.modules["torch"].Tensor)
        ):
            from hagane.frontends.libraries.torch.lift import lift_torch

            return lift_torch(core, found)
        if isinstance(found, np.dtype) and found.kind in "biufc":
            return DType(ir.DataType.from_numpy(found), "numpy")
        if root not in ("chainer", "hagane"):
            return MISSING
        if hasattr(found, "array") and hasattr(found, "creator_node"):
            return self.lift_array(core, found, "chainer.Variable")
        known = self.name_of(type(found))
        if known is not None and known in self.tables["chainer"].layers:
            return Instance(core.heap.new({}), Library(known), found)
        return MISSING

    def lift_array(self, core: Core, found: Any, kind: str) -> Value:
        """Return a tensor for a real array; small ones keep their content."""
        from hagane.frontends.libraries.arrays import lift_array

        return lift_array(core, found, kind)


def _is_within(name: str, modules: Sequence[str]) -> bool:
    """Whether a name is that of a module, or of something in it."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _module_of(root: str) -> Any:
    """Return the module that a table is about, if it is loaded; hagane succeeds Chainer."""
    if root == "chainer" and root not in sys.modules and "hagane.nn" in sys.modules:
        return sys.modules["hagane"]
    return sys.modules.get(root)


def _resolve(name: str) -> Any:
    parts = name.split(".")
    found: Any = _module_of(parts[0])
    for part in parts[1:]:
        if found is not None and found is sys.modules.get("torch") and part not in vars(found):
            # Its compiler takes a second to import, and nobody has objects of it before.
            found = sys.modules.get(f"torch.{part}")
        else:
            found = getattr(found, part, None)
        if found is None:
            return None
    return found


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


def _kind(dtype: Any) -> str:
    """Return the letter that NumPy has for a kind of element types."""
    return "f" if dtype.is_floating_point() else str(dtype.numpy().kind)


def _tensor_classes(value: Tensor) -> tuple[str, ...]:
    if value.kind == "torch.Tensor":
        extra = ("torch.nn.Parameter", "torch.nn.parameter.Parameter") if value.parameter else ()
        return ("torch.Tensor", "torch.FloatTensor", *extra)
    if value.kind == "chainer.Variable":
        return (
            ("chainer.Variable", "chainer.Parameter") if value.parameter else ("chainer.Variable",)
        )
    return (value.kind, "numpy.generic") if value.shape == () else (value.kind,)


def _is_real_attribute(kind: str, name: str) -> bool:
    """Whether the real class, where it is loaded, has an attribute that no table knows."""
    module, _, cls = kind.rpartition(".")
    found = getattr(sys.modules.get(module), cls, None)
    return found is not None and hasattr(found, name)


def _names_of(core: Core, found: Value) -> set[str]:
    """Return the names of the attributes of a layer, of which a choice makes some."""
    if isinstance(found, Choice):
        return _names_of(core, found.yes) | _names_of(core, found.no)
    return {name for name in core.mapping(found) or {} if isinstance(name, str)}


def _whole(core: Core, value: Value) -> Value:
    """Return a scalar of NumPy that is an integer as a number: ``Linear(np.prod(shape), 4)``."""
    scalar = isinstance(value, Tensor) and value.kind == "numpy.ndarray" and value.shape == ()
    if not scalar or value.dtype.numpy().kind not in "iu":
        return value
    return core.tensor_number(value, whole=True)


__all__ = ["LibraryTables", "Many"]
