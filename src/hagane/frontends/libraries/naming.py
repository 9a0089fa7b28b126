"""Names of libraries: modules, constants, and the tables that know them."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial, reduce
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from hagane.frontends.python.interpret.reading.packages import nearest_to
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Device,
    DType,
    Host,
    Library,
    Outside,
    Tensor,
    Value,
)
from hagane.graph.types import dtype_name

if TYPE_CHECKING:
    from hagane.frontends.libraries.table import Table
    from hagane.frontends.python.interpret.core import Core

# Packages that are never imported or interpreted, only known by name.
_ROOTS = (
    "torch", "torchvision", "PIL", "tiktoken", "tyro", "numpy", "chainer", "chainermn", "cupy",
    "jaxtyping", "hagane", "beartype", "typeguard", "einops", "tqdm", "matplotlib", "tensorboard",
    "tensorboardX", "wandb", "fire",
)  # fmt: skip
# Those that only draw, keep or send values; their results come from outside of the program.
_OUTSIDE = (
    "IPython", "colorama", "comet_ml", "imageio", "labml", "matplotlib", "matplotlib_inline",
    "mlflow", "mpl_toolkits", "pandas", "plotly", "prettytable", "psutil", "pytest", "requests",
    "seaborn", "sklearn", "tabulate", "tensorboard", "tensorboardX", "termcolor", "wandb", "yaml",
)  # fmt: skip
_SETTINGS = ("wandb.config", "wandb.run", "wandb.summary")
_RECORDS = (
    "tqdm", "tiktoken", *_OUTSIDE, "torch.utils.tensorboard", "PIL", "torchvision.datasets",
    "torchvision.io", "torchvision.utils.save_image",
)  # fmt: skip
# Modules whose functions and classes are read from hagane's own source.
_OF_SOURCE = ("chainer.distributions", "hagane.distributions", "hagane.nn.distributions")
_DIVERGENCES = tuple(
    f"{root}{module}.{name}"
    for root in ("chainer", "hagane")
    for module in ("", ".distribution")
    for name in ("kl_divergence", "cross_entropy")
)
# Libraries whose functions programs replace by others, for all of their calls.
_PATCHED = ("torch",)
# Those whose real modules are read from their source all the same, where a real model leads there.
READ = ("torchvision",)


class Names:
    """Dotted names of libraries: which are known, and as what."""

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables by root name; loaded when they are first needed."""
        from hagane.frontends.libraries import everything

        return everything.TABLES

    @cached_property
    def by_tensor(self) -> dict[str, Table]:
        """The tables by the class of their tensors."""
        return {table.tensor: table for table in self.tables.values()}

    @cached_property
    def _given(self) -> dict[str, Value]:
        """The names that the program sets of libraries."""
        return {}

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
        if name.startswith("torch.ops."):  # whose overloads are called like classes
            return name
        for again in ("torch.functional.", "torch.torch."):  # PyTorch's own, under their names too
            if name.startswith(again):
                return self._canonical(f"torch.{name.removeprefix(again)}")
        if root != "hagane":
            inner = len(rest) > 2 or (root == "chainer" and len(rest) == 2)
            return table.outer_name(name) if table is not None and inner else name
        name = name.replace("hagane.nn.functions", "hagane.functions", 1)
        if name not in self._successors and len(rest) == 2 and "chainer" in self.tables:
            outer = self.tables["chainer"].outer_name(f"chainer.{'.'.join(rest)}")
            name = outer if outer.count(".") == 1 else name
        return self._successors.get(name, name)

    def knows(self, name: str) -> bool:
        """Whether a module is known by its name alone."""
        return name.partition(".")[0] in _ROOTS

    def describes(self, name: str) -> bool:
        """Whether a table knows what a class of a library is and has."""
        table = self.table_of(name)
        if table is None:
            return False
        known = (table.layers, table.methods, table.attributes, table.bases, table.transparent)
        return name == table.tensor or any(name in names for names in known)

    def unread(self, core: Core, name: str) -> Value:
        """Return the value of a name that no table knows, and tell the reader."""
        if self.is_outside(name):
            return core.outside(f"what '{name}' gives")
        near = nearest_to(name) if core.imports and self.knows(name.partition(".")[0]) else None
        if near is not None:
            owner, _, last = name.rpartition(".")
            remedy = f"did you mean {near}?" if near else ""
            raise CheckError("attribute", f"'{owner}' has no attribute '{last}'", remedy=remedy)
        return core.lost(self.stranger(name))

    def stranger(self, name: str) -> str:
        """Return the reason why a name of a library that no table knows has no value."""
        top = name.partition(".")[0]
        if self.knows(top):
            return f"'{name}' is not understood"
        return (
            f"'{name}' is not understood: '{top}' is no library that hagane knows, and no "
            "module beside the file or in its project"
        )

    def reads(self, name: str) -> bool:
        """Whether a real module is read from its source."""
        return name.partition(".")[0] in READ or not self.knows(name)

    def records(self, name: str) -> bool:
        """Whether a call of a name only shows or keeps values, unknown ones too."""
        return _is_within(name, _RECORDS)

    def writes(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> bool:
        """Whether a call changes the content of a tensor of a graph."""
        return False

    def arguments(self, name: str) -> dict[str, bool] | None:
        """Return a function's arguments and whether each has to be given; None if not known."""
        from hagane.frontends.libraries.table import arguments_of

        table = self.table_of(name)
        found = None if table is None else table.functions.get(name)
        return None if found is None else arguments_of(found)

    def parameters(self, name: str) -> list[str]:
        """Return the names of the parameters of a function, a method or a class; none if open."""
        from hagane.frontends.libraries.table import places_of

        table = self.table_of(name)
        if table is None:
            return []
        owner, _, method = name.rpartition(".")
        made = getattr(table.layers.get(name), "init", None)
        found = table.functions.get(name) or table.methods.get(owner, {}).get(method) or made
        return [] if found is None else places_of(found)

    def member(self, core: Core, library: Library, name: str) -> Value:
        """Return the meaning of a dotted name."""
        whole = self._canonical(f"{library.name}.{name}")
        if _is_within(whole, _SETTINGS):
            return core.outside(f"'{whole}'")
        if whole in self._given:
            return self._given[whole]
        table = self.table_of(whole)
        if table is not None and whole in table.constants:
            known = table.constants[whole]
            if type(known) is not bool or not core.emit.builds:
                return known
            real = self._setting(core, library, name)  # torch.backends.cudnn.enabled
            return known if real is MISSING else real
        if table is not None and whole in table.names:
            return table.names[whole][0](core)
        if library.name == "torch.return_types" and isinstance(real := real_named(whole), type):
            return Host(real)
        if name.startswith("__") and name.endswith("__") and table is not None:
            if name in ("__eq__", "__hash__") and library.name in table.layers:
                return Host(getattr(object, name))
            if name == "__init__" and library.name in table.layers:  # of a base, by its name
                return Library(whole)
            if name == "__name__":
                return whole.rpartition(".")[0].rpartition(".")[2]
            if name == "__module__" and library.name.partition(".")[0] in sys.modules:
                return getattr(real_named(library.name), name, MISSING)
            if library.name == table.tensor:  # an operator, called by its method's name
                return Library(whole) if name in table.methods[table.tensor] else MISSING
            known = library.name in table.functions or library.name in table.layers
            return MISSING if known else Library(whole)
        if library.name.rpartition(".")[2].lstrip("_")[:1].isupper():  # a class, as a rule
            real = real_named(whole)
            if isinstance(real, enum.Enum):  # which attributes of the program may be
                return core.lift(real)
        if library.name in _OF_SOURCE or whole in _DIVERGENCES:
            real = real_named(f"hagane.distributions.{name}")
            if isinstance(real, type | FunctionType):
                return core.lift(real)
        if table is not None and whole in table.functions:
            put = self._put_in_place(table, library, name, whole)
            if put is not None:
                return core.lift(put)
        is_real = core.frame is not None and bool(core.frame.module.host)
        known = table is not None and (whole in table.functions or whole in table.layers)
        if known:
            return Library(whole)
        if is_real and _lacks(library.name, name):
            return MISSING
        setting = self._setting(core, library, name) if core.emit.builds else MISSING
        return Library(whole) if setting is MISSING else setting

    def _setting(self, core: Core, library: Library, name: str) -> Value:
        """Return a number, text or None that the running Python has under a library's name."""
        owner = real_named(library.name)
        value = getattr(owner, name, MISSING)
        if owner is None or not _is_setting(value):
            return MISSING
        core.observer.asked(owner, partial(getattr, owner, name, MISSING), value)
        return core.lift(value)

    def _put_in_place(self, table: Table, library: Library, name: str, whole: str) -> Any:
        """Return the function that the running program has put in a library's place, or None.

        Such as ``torch.nn.functional.relu = my_relu``.
        """
        if table.root not in _PATCHED or library.name not in sys.modules:
            return None
        real = vars(sys.modules[library.name]).get(name)
        if real is None or (
            _root_of(real) in ("", table.root) and getattr(real, "__name__", name) == name
        ):
            return None
        known = self.name_of(real)
        if known is not None:
            return real if table.functions.get(known) is not table.functions[whole] else None
        return real if is_of_program(real, table.root) else None

    def name_of(self, found: Any) -> str | None:
        """Return the name under which a table knows a real function or class."""
        raise NotImplementedError

    def set_member(self, core: Core, library: Library, name: str, value: Value) -> None:
        """Set a name of a library: one of its own, or one that the program gives it."""
        whole = self._canonical(f"{library.name}.{name}")
        table = self.table_of(whole)
        if table is not None and whole in table.names:
            table.names[whole][1](core, value)
        elif not core.emit.builds:
            known = not core.knowledge.path.decisions
            self._given[whole] = value if known else core.outside(f"'{whole}', which is set")

    def set_content(self, core: Core, x: Tensor, value: Value) -> bool:
        """Do ``x.data = value`` where a graph can tell it; whether it was done."""
        return False

    def view_of(self, core: Core, view: Tensor, whole: Tensor, now: Tensor) -> Tensor:
        """Return the view of ``now`` that ``view`` is of ``whole``, which may be all of it."""
        value = core.emit.again(view.value, whole.value, now.value)
        return replace(view, value=value, known=None)

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
        return {"type": kind, "index": _index_of(index)}.get(name, MISSING)

    def is_transparent(self, name: str) -> bool:
        """Whether a decorator changes no type."""
        table = self.table_of(name)
        root = name.partition(".")[0]
        return root in ("jaxtyping", "beartype", "typeguard") or (
            table is not None and name in table.transparent
        )

    def _inherits(self, table: Table, name: str, base: str) -> bool:
        while name:
            if name == base:
                return True
            name = table.bases.get(name, "")
        return False

    def is_outside(self, name: str) -> bool:
        """Whether what a call of a name gives comes from outside of the program."""
        return _is_within(name, _OUTSIDE)


def _index_of(text: str) -> Value:
    """Return the number of a device; a text that only the run knows may stand for it."""
    if not text:
        return None
    return int(text) if text.isdigit() else Outside("the number of a device", told=True)


def _root_of(real: Any) -> str:
    """Return the package that a function belongs to; empty if nobody knows."""
    return str(getattr(real, "__module__", None) or "").partition(".")[0]


def is_of_program(real: Any, root: str) -> bool:
    """Whether a function in the place of one of a library is another's."""
    return isinstance(real, FunctionType) and _root_of(real) not in ("", root)


def real_named(name: str) -> Any:
    """Return what the running Python has under a dotted name; None if that was not imported."""
    root, *parts = name.split(".")
    start: Any = sys.modules.get(root)
    return reduce(lambda found, part: getattr(found, part, None), parts, start)


def _is_setting(value: Any) -> bool:
    """Whether a value under a library's name is a number, text or None: a version, a switch."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_is_setting, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def _lacks(owner: str, name: str) -> bool:
    """Whether a module or class of the running Python has no such name, nor a module under it."""
    real = real_named(owner)
    if not (isinstance(real, type | ModuleType) or callable(real)) or hasattr(real, name):
        return False
    if hasattr(sys.modules.get(owner), name):  # a module that a function of its name hides
        return False
    return not isinstance(real, ModuleType) or not _is_module(f"{real.__name__}.{name}")


@cache
def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


def _is_within(name: str, modules: Sequence[str]) -> bool:
    """Whether a name is that of a module, or of something in it."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _kind(dtype: Any) -> str:
    """Return the letter that NumPy has for a kind of element types."""
    return "f" if dtype.is_floating_point() else str(dtype.numpy().kind)


__all__ = ["Names", "real_named"]
