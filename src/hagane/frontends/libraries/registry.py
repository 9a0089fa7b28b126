"""All libraries' tables, asked by name: the calls of their functions and tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.frontends.libraries.lifting import RealNames
from hagane.frontends.libraries.memory.written import (
    IN_PLACE,
    UNCHANGED,
    apart_from_out,
    note_statement,
    noted,
)
from hagane.frontends.libraries.named_results import with_class
from hagane.frontends.libraries.names.left_out import LEFT_OUT
from hagane.frontends.libraries.naming import is_of_program
from hagane.frontends.libraries.objects import Objects
from hagane.frontends.libraries.torch import aten
from hagane.frontends.libraries.torch.members import refuse_arrays, refuse_data
from hagane.frontends.libraries.torch.published.out import refuse_out
from hagane.frontends.libraries.torch.published.overflow import need_room
from hagane.frontends.libraries.torch.recording import (
    following,
    freeze,
    need_gradients,
    note_layer,
    refuse_numpy,
    refuse_write,
)
from hagane.frontends.libraries.torch.scalars import takes_one_axis, without_axis
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Bound, Instance
from hagane.frontends.python.values.stand_ins import identity
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Fields,
    Host,
    Library,
    LibraryMethod,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from hagane.frontends.libraries.complex.parts import ComplexParts
    from hagane.frontends.libraries.table import Table
    from hagane.frontends.python.interpret.core import Core


class LibraryTables(Objects, RealNames):
    """The tables of all libraries."""

    @cached_property
    def complex_parts(self) -> ComplexParts:
        """What makes complex tensors of real ones; most programs have none."""
        from hagane.frontends.libraries.complex.parts import ComplexParts

        return ComplexParts()

    # Tensors.

    def _of(self, tensor: Tensor) -> Table:
        return self.by_tensor[tensor.kind]

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        table = self._of(value)
        computed = table.attributes.get(value.kind, {}).get(name)
        if computed is not None:
            core.emit.kind = value.kind
            made = core.wrap(computed(core, value))
            return noted(core, f"{value.kind}.{name}", computed, [value], {}, made)
        if name in table.methods.get(value.kind, {}):
            put = self._method_of_program(core, value, name)
            return LibraryMethod(value, f"{value.kind}.{name}") if put is None else put
        if name in LEFT_OUT.get(value.kind, ()) or _is_real_attribute(value.kind, name):
            return core.lost(f"'{value.kind}.{name}' is not understood")
        return MISSING

    def _method_of_program(self, core: Core, value: Tensor, name: str) -> Value:
        """Return the method that the running program has given PyTorch's tensors, or None."""
        torch = sys.modules.get("torch")
        if value.kind != "torch.Tensor" or torch is None:
            return None
        core.observer.library_name(torch.Tensor, name)
        real = vars(torch.Tensor).get(name)
        return Bound(core.lift(real), value) if is_of_program(real, "torch") else None

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kinds = [v.kind for v in (left, right) if isinstance(v, Tensor)]
        # A library's own tensors take arrays of NumPy along.
        kind = next((k for k in kinds if k != "numpy.ndarray"), kinds[0])
        core.emit.kind = kind
        run = self.by_tensor[kind].operator
        assert run is not None
        made = self._in_context(
            core, f"{kind}.{name}", (left, right), {}, lambda a, _: run(core, name, a[0], a[1])
        )
        if name in IN_PLACE:
            if isinstance(left, Tensor):
                refuse_write(core, left, f"{core.emit.label or name}=")
            note_statement(core, left, made)
        return made

    def item_operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return what ``x[index] += right`` stores, given the item ``left``."""
        return self.operator(core, name, left, right)

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        core.emit.kind = value.kind
        table = self._of(value)
        run = table.unary
        assert run is not None
        return table.checked(
            core, f"{value.kind}.{name}", [value], {}, lambda: run(core, name, value)
        )

    def tensor_item(self, core: Core, value: Tensor, index: Value) -> Value:
        """Return ``value[index]``."""
        core.emit.kind = value.kind
        run = self._of(value).item
        assert run is not None
        made = run(core, value, index)
        if isinstance(made, Tensor) and core.emit.writes is not None:
            core.emit.share(made, value)
        return made

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Do ``value[index] = item``."""
        run = self._of(value).set_item
        assert run is not None
        refuse_write(core, value, "x[…] = y")
        if value.kind == "torch.Tensor":
            need_room(core, value.dtype, item, "a number", stores=True)
        run(core, value, index, item)

    def set_needs(self, core: Core, x: Tensor, value: Value) -> None:
        """Take note that a tensor is told whether it needs gradients."""
        if value is True:
            core.emit.note_trained(x)
        else:
            freeze(core)
        need_gradients(core, x, value)

    # Functions and layers.

    def call(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library."""
        table = self.table_of(name)
        if table is not None and name.startswith(aten.ROOT) and name not in table.functions:
            if "self" in keywords:
                rest = {key: value for key, value in keywords.items() if key != "self"}
                arguments, keywords = [keywords["self"], *arguments], rest
            known = aten.public(name, table.functions, table.methods[table.tensor])
            if known:
                made = self.call(core, known, arguments, keywords)
                return tuple(made) if isinstance(made, Fields) else made
            last = name.removeprefix(aten.ROOT).partition(".")[0]
            plain = f"{aten.ROOT}{last.removesuffix('_')}"
            in_place = last.endswith("_") and not last.endswith("__") and arguments
            if in_place and aten.public(plain, table.functions, table.methods[table.tensor]):
                made = self.call(core, plain, arguments, keywords)
                return self.call_method(core, "torch.Tensor.copy_", [arguments[0], made], {})
            return self.unread(core, name)
        if table is not None:
            if table.operator is not None:  # a library with tensors of its own
                core.emit.kind = table.tensor
            if table.root == "numpy" and not core.emit.builds and _has_torch(arguments):
                return self._of_torch(core, name, arguments, keywords)
            if name in table.functions:
                handler, as_written = table.functions[name], (arguments, keywords)
                arguments, keywords = table.named(handler, name, arguments, keywords)
                refuse_arrays(core, name, arguments, keywords)
                given = apart_from_out(name, handler, keywords)
                with following(core, name), table.fitting(core, name, *as_written):
                    made = self._in_context(
                        core, name, arguments, given,
                        lambda a, k: _call_function(table, name, core, a, k),
                    )  # fmt: skip
                if "requires_grad" in keywords and isinstance(made, Tensor):
                    made = need_gradients(core, made, keywords["requires_grad"])
                out = keywords.get("out")
                if table.root == "torch" and isinstance(out, Tensor) and isinstance(made, Tensor):
                    refuse_out(core, name, made, out)
                    made = self.call_method(core, "torch.Tensor.type_as", [made, out], {})
                return with_class(name, noted(core, name, handler, arguments, keywords, made))
            if name in table.layers:
                for value in (*arguments, *keywords.values()) if name.startswith(_LAYERS) else ():
                    if isinstance(value, Library) and not self.knows(value.name):
                        return self.unread(core, value.name)  # a size that nobody knows
                if name.startswith(_LAYERS):
                    refuse_data(core, name, arguments)
                made = Instance(core.heap.new({}), Library(name))
                lost = self.initialise(core, made, Library(name), arguments, keywords)
                return made if lost is None else lost
            if name in table.transparent:
                return Host(identity) if not arguments else arguments[0]
            unbound = self._unbound(core, table, name, arguments)
            if unbound:
                return self.call_method(core, unbound, arguments, keywords)
        if self.is_transparent(name):
            return Host(identity)
        return self.unread(core, name)

    def _of_torch(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function of NumPy with tensors of PyTorch, whose methods NumPy calls, mostly."""
        for value in arguments:
            if isinstance(value, Tensor):
                refuse_numpy(core, value, name)
        given = [
            value.seen_as("numpy.ndarray") if _has_torch([value]) else value for value in arguments
        ]
        made = self.call(core, name, given, keywords)
        own = name.rpartition(".")[2] in _OWN_ARRAYS
        return made.seen_as("torch.Tensor") if isinstance(made, Tensor) and not own else made

    def _unbound(self, core: Core, table: Table, name: str, arguments: Sequence[Value]) -> str:
        """Return the method of a class that is called by its name, with an object of it first.

        It may be a base's: ``nn.Linear.train(self)``. Empty for other calls.
        """
        owner, _, method = name.rpartition(".")
        receiver = arguments[0] if arguments else None
        if isinstance(receiver, Tensor):
            fits = receiver.kind == owner
        else:
            fits = isinstance(receiver, Instance) and owner in self.libraries_of(core, receiver)
        while fits and owner:
            if hasattr(table.layers.get(owner), method) or method in table.methods.get(owner, {}):
                return f"{owner}.{method}"
            owner = table.bases.get(owner, "")
        return ""

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
            refuse_arrays(core, name, arguments[1:], keywords)
            try:
                with following(core, name if method == "forward" else ""):
                    made = view.decided(
                        lambda: self._in_context(
                            core, name, arguments[1:], keywords,
                            lambda a, k: call_handler(handler, name, core, [view, *a], k, hidden=2),
                            receiver,
                        )
                    )  # fmt: skip
            except CheckError as error:
                if error.layer is None:
                    error.layer = core.copies.get(receiver.key, receiver.key)
                raise
            if method == "forward":
                note_layer(core, name, made)
            return with_class(name, noted(core, name, handler, arguments, keywords, made))
        core.emit.kind = owner if owner == table.tensor else table.tensor
        found, as_written = table.methods[owner][method], (arguments, keywords)
        arguments, keywords = table.named(found, name, arguments, keywords)
        with table.fitting(core, name, *as_written):
            made = self._in_context(
                core, name, arguments, keywords,
                lambda a, k: call_handler(found, name, core, a, k, hidden=2),
            )  # fmt: skip
        in_place = method.endswith("_") and not method.endswith("__") and method not in UNCHANGED
        if in_place and owner == "torch.Tensor" and isinstance(arguments[0], Tensor):
            refuse_write(core, arguments[0], f"{method}()")
        return with_class(name, noted(core, name, found, arguments, keywords, made))

    def _in_context(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        run: Callable[[Sequence[Value], Mapping[str, Value]], Value], layer: Instance | None = None,
    ) -> Value:  # fmt: skip
        """Call a function of tensors as the contexts around it have it (``torch.autocast``)."""
        if takes_one_axis(name, arguments):
            row = core.op("Reshape", arguments[0], core.emit.constant([1], ir.DataType.INT64))
            made = self._in_context(core, name, [row, *arguments[1:]], keywords, run, layer)
            return without_axis(core, made)
        if not name.startswith("torch."):
            return run(arguments, keywords)
        made = self._in_autocast(core, name, arguments, keywords, run, layer)
        self.by_tensor["torch.Tensor"].lay(core, name, arguments, keywords, made)
        return made

    def _in_autocast(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value],
        run: Callable[[Sequence[Value], Mapping[str, Value]], Value], layer: Instance | None,
    ) -> Value:  # fmt: skip
        """Call a function of PyTorch in the element types that contexts around it ask for."""
        checked = self.by_tensor["torch.Tensor"].checked
        if not core.heap[core.variables]:
            return checked(core, name, arguments, keywords, lambda: run(arguments, keywords))
        from hagane.frontends.libraries.torch.training.casting import casted, narrowed, result_of

        given, named, dtype = casted(core, name, arguments, keywords)
        if layer is None:
            made = checked(core, name, given, named, lambda: run(given, named))
            return result_of(core, made, dtype)
        with narrowed(core, name, layer):
            return result_of(core, run(given, named), dtype)

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
        if core.emit.recorded is not None:
            core.emit.recorded.unready.discard(made.key)
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


# Classes whose arguments are numbers and settings.
_LAYERS = "torch.nn."
# Functions of NumPy that make an array of their own of whatever they are given.
_OWN_ARRAYS = frozenset(
    ("array", "asarray", "ascontiguousarray", "asfortranarray", "asanyarray", "atleast_1d",
     "atleast_2d", "concatenate", "stack", "vstack", "hstack", "where", "unique", "argwhere",
     "nonzero", "histogram", "bincount", "interp", "isin", "float32", "float64", "int64", "int32")
)  # fmt: skip


def _has_torch(arguments: Sequence[Value]) -> bool:
    return any(isinstance(v, Tensor) and v.kind == "torch.Tensor" for v in arguments)


def _call_function(
    table: Table, name: str, core: Core, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Value:
    from hagane.frontends.libraries.table import call_handler

    function = table.functions[name]
    return call_handler(function, name, core, arguments, keywords)


def _is_real_attribute(kind: str, name: str) -> bool:
    """Whether the real class, where it is loaded, has an attribute that no table knows."""
    module, _, cls = kind.rpartition(".")
    found = getattr(sys.modules.get(module), cls, None)
    return found is not None and any(name in vars(cls) for cls in found.__mro__)


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


__all__ = ["LibraryTables"]
