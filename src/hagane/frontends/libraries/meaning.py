"""Tables for capture: only functions whose nodes are known to mean them.

The checker asks a table for types; many of its functions are typed without operators, or with
operators that only have the same type. Names with the right values are listed in
``meant.py``: each of them is compared with its library in tests/capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries import meant
from hagane.frontends.libraries.additions import MEANT as ADDITIONS
from hagane.frontends.libraries.chainer.meant import MEANT as CHAINERS
from hagane.frontends.libraries.chainer.uncomputed import UNCOMPUTED
from hagane.frontends.libraries.complex_parts import COMPLEX, ComplexParts
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.libraries.table import arguments_of
from hagane.frontends.libraries.typed_only import reason_of
from hagane.frontends.libraries.viewing import Put, put_back
from hagane.frontends.libraries.writing import Into, check_writable, copied, write, written_into
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import DType, Host, Many, Tensor, Value

# Operators that other packages add to PyTorch, and functions that return nothing: tests of their
# own compare them with their definition.
_ADDED = frozenset(
    ("torch.ops.torchvision.nms", "numpy.copyto", "numpy.ndarray.fill", "numpy.ndarray.sort",
     "numpy.ndarray.is_integer",
     *(f"numpy.{name}.at" for name in ("add", "subtract", "multiply", "maximum", "minimum")))
)  # fmt: skip
MEANT = meant.MEANT | CHAINERS | ADDITIONS | _ADDED
# Makers of objects: the operators are in the use of these.
_MAKING = ("__init__",)


class MeaningTables(LibraryTables):
    """The tables of all libraries, of which only some functions may be used.

    Args:
        used: Is told the name of each function that the program calls.
        trusting: Whether to let all functions pass, as a test of their meaning does.
    """

    def __init__(self, used: Callable[[str], None] = lambda name: None, *, trusting: bool = False):
        self._used = used
        self._trusting = trusting
        # Views that indices took, with the whole and the index; and others, with the way back.
        self._parts: dict[ir.Value, tuple[Tensor, Value]] = {}
        self._views: dict[ir.Value, tuple[Tensor, Put]] = {}
        self._frame: object = None  # of the program, in which a function of a library runs
        self._complex = ComplexParts()

    @cached_property
    def _handlers(self) -> frozenset[int]:
        """The functions behind the listed names; other names of theirs mean the same."""
        return frozenset(id(self._handler(name)) for name in MEANT) - {id(None)}

    def _handler(self, name: str) -> Any:
        table = self.table_of(name)
        if table is None:
            return None
        if name in table.functions:
            return table.functions[name]
        owner, _, method = name.rpartition(".")
        found = table.methods.get(owner, {}).get(method)
        if found is not None:
            return found
        found = table.attributes.get(owner, {}).get(method)
        if found is not None:
            return found
        return getattr(table.layers.get(owner), method, None)

    def _within(self, core: Core, name: str, run: Callable[[], Value]) -> Value:
        """Run the function of a name; functions that it calls are its own."""
        if name in _STRUCTURE or (self._frame is not None and self._frame is core.frame):
            return run()
        self._used(name)
        if not self._trusting:
            self._refuse(name)
        before, self._frame = self._frame, core.frame
        try:
            return run()
        finally:
            self._frame = before

    def _refuse(self, name: str) -> None:
        """Refuse a name that is not listed."""
        last = name.rpartition(".")[2]
        if last.endswith("_") and not last.endswith("__") and last != "requires_grad_":
            raise CheckError(
                "capture",
                f"'{name}' works in place, which cannot be captured yet; use its result, as in "
                f"x = x.{last.rstrip('_')}(...)",
            )
        if name in UNCOMPUTED:
            raise CheckError("capture", f"'{name}' cannot be captured: {UNCOMPUTED[name]}")
        if name not in MEANT and id(self._handler(name)) not in self._handlers:
            reason = reason_of(name)
            yet = "" if reason else " yet"
            told = reason or "the checker knows its types, not its values"
            raise CheckError("capture", f"'{name}' cannot be captured{yet}: {told}")

    def call(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library."""
        stacked = _stacked(core, name, arguments, keywords)
        if stacked is not None:
            return stacked
        table = self.table_of(name)
        if table is None or name not in table.functions:
            return super().call(core, name, arguments, keywords)
        into = written_into(name, table.functions[name], arguments, keywords)
        if into is not None:
            return self._into(core, name, into, lambda a, k: self.call(core, name, a, k))
        if name.endswith(".at") and arguments and isinstance(arguments[0], Tensor):
            self._written(core, arguments[0], f"make a copy for '{name}'", lambda: self._within(
                core, name, lambda: _super(self).call(core, name, arguments, keywords)
            ), by_statement=True)  # fmt: skip
            return None
        if name == "numpy.copyto" and arguments and isinstance(arguments[0], Tensor):
            self._copied_to(core, *arguments, **keywords)
            return None
        found = self._complex.result(
            core, name, arguments, keywords,
            lambda a, k: _super(self).call(core, name, a, k),
            lambda a, k: self.call(core, name, a, k),
        )  # fmt: skip
        if found is not NotImplemented:
            self._used(name)
            return found
        x = arguments[0] if arguments else keywords.get("input")
        if not isinstance(x, Tensor) or not _is_in_place(
            table.functions[name], arguments, keywords
        ):
            x = None
        else:
            check_writable(core, x, "leave out inplace=True")
        given = next((v for v in arguments[:1] if isinstance(v, Tensor)), None)
        made = self._within(core, name, lambda: _super(self).call(core, name, arguments, keywords))
        if name in _COPYING or not any(map(_holds_tensors, (*arguments, *keywords.values()))):
            return copied(core, made, given)
        self._note_view(name, given, made)
        return made if x is None else write(core, x, made)

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        if name.rpartition(".")[2] in _MAKING:
            return super().call_method(core, name, arguments, keywords)
        into = written_into(name, self._handler(name), arguments, keywords)
        if into is not None:
            return self._into(core, name, into, lambda a, k: self.call_method(core, name, a, k))
        found = self._complex.result(
            core, name, arguments, keywords,
            lambda a, k: _super(self).call_method(core, name, a, k),
            lambda a, k: self.call_method(core, name, a, k),
        )  # fmt: skip
        if found is not NotImplemented:
            self._used(name)
            return found
        plain = name.rstrip("_")
        x = arguments[0] if arguments else None
        if name.endswith("_") and isinstance(x, Tensor) and self._handler(plain) is not None:
            remedy = f"use its result, as in x = x.{plain.rpartition('.')[2]}(...)"
            return self._written(core, x, remedy, lambda: self._within(
                core, plain, lambda: _super(self).call_method(core, plain, arguments, keywords)
            ))  # fmt: skip
        filling = _FILLING.get(name)
        if filling is not None and isinstance(x, Tensor):
            made = self._written(core, x, f"make a new tensor with {filling}", lambda: core.op(
                "Identity", self._within(core, filling, lambda: _super(self).call(
                    core, filling, arguments, keywords
                )),
            ))  # fmt: skip
            return None if name.startswith("numpy.") else made
        if name == "torch.Tensor.copy_" and isinstance(x, Tensor) and len(arguments) > 1:
            return self._written(core, x, "make a new tensor", lambda: self._like(
                core, arguments[1], x
            ))  # fmt: skip
        made = self._within(
            core, name, lambda: _super(self).call_method(core, name, arguments, keywords)
        )
        if name in _COPYING and isinstance(x, Tensor):
            return copied(core, made, x)
        self._note_view(name, x, made)
        return made

    def _note_view(self, name: str, whole: Value, made: Value) -> None:
        """Note how a view that a function returned is written back."""
        put = put_back(name, whole, made)
        if put is not None:
            self._views[made.value] = whole, put

    def _written(
        self, core: Core, x: Tensor, remedy: str, run: Callable[[], Value],
        *, by_statement: bool = False,
    ) -> Value:  # fmt: skip
        """Give a tensor the content that a function returns.

        A part that was taken by an index is set as an item of the whole: ``x[i].zero_()``, and
        other views are put back into theirs: ``x.t().mul_(2)``.
        """
        _refuse_complex(x)
        if x.value in self._views:
            whole, put = self._views[x.value]
            view = run()
            if not isinstance(view, Tensor) or view.dtype != x.dtype or view.shape != x.shape:
                return write(core, x, view)  # which is refused
            now = self._written(core, whole, remedy, lambda: put(core, whole, view))
            assert isinstance(now, Tensor)
            value = core.emit.again(x.value, whole.value, now.value)
            made = core.emit.tensors[value] = replace(x, value=value)
            self._views[value] = now, put
            return made
        if x.value not in self._parts:
            check_writable(core, x, remedy, by_statement=by_statement)
            renewed: dict[ir.Value, Tensor] = {}
            made = write(core, x, run(), renewed)
            for old, fresh in renewed.items():
                if old in self._views and self._views[old][0].value in renewed:
                    whole, put = self._views[old]
                    self._views[fresh.value] = renewed[whole.value], put
                elif old in self._parts and self._parts[old][0].value in renewed:
                    whole, index = self._parts[old]
                    self._parts[fresh.value] = renewed[whole.value], index
            return made
        (whole, index), item = self._parts[x.value], run()
        new = self._written(core, whole, remedy, lambda: self._with(core, whole, index, item))
        return self.tensor_item(core, new, index)

    def _into(
        self, core: Core, name: str, into: Into,
        run: Callable[[Sequence[Value], Mapping[str, Value]], Value],
    ) -> Value:  # fmt: skip
        """Write the result of a function into the array given as ``out``, where ``where`` holds."""

        def made() -> Value:
            found = self._like(core, run(into.arguments, into.keywords), into.target)
            if into.where is True:
                return found
            place = name.partition(".")[0] + ".where"
            found = self.call(core, place, [into.where, found, into.target], {})
            return self._like(core, found, into.target)

        return self._written(core, into.target, "use its result, and leave out 'out'", made)

    def _copied_to(
        self, core: Core, dst: Tensor, src: Value, casting: Value = "", where: Value = True
    ) -> None:
        """Write an array into another one where a condition holds (``numpy.copyto``)."""
        del casting  # of types that NumPy refuses, a run of the program tells
        target = Into(dst, where, [src], {})
        array = "numpy.asarray"
        self._into(core, "numpy.copyto", target, lambda a, k: self.call(core, array, a, k))

    def _like(self, core: Core, value: Value, x: Tensor) -> Tensor:
        """Return a tensor with the element type and shape of another one."""
        for name in ("torch.Tensor.type_as", "torch.Tensor.expand_as"):
            value = self.call_method(core, name, [value, x], {})
        made: Tensor = core.op("Identity", value)
        return made

    def _with(self, core: Core, value: Tensor, index: Value, item: Value) -> Tensor:
        """Return a tensor with another item."""
        made = core.op("Identity", value) if value.known is not None else replace(value)
        made.known = None
        super().set_tensor_item(core, made, index, item)
        copied(core, made, None)
        return made

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        computed = self._of(value).attributes.get(value.kind, {}).get(name)
        if computed is None:
            return super().tensor_attribute(core, value, name)
        whole = f"{value.kind}.{name}"
        found = self._complex.result(
            core, whole, (value,), {},
            lambda a, _: _super(self).tensor_attribute(core, a[0], name),
            lambda a, _: self.tensor_attribute(core, a[0], name),
        )  # fmt: skip
        if found is not NotImplemented:
            return found
        made = self._within(core, whole, lambda: _super(self).tensor_attribute(core, value, name))
        self._note_view(name, value, made)
        return made

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kind = next(v.kind for v in (left, right) if isinstance(v, Tensor))
        whole = f"{kind} {name.removeprefix('i') if name in _IN_PLACE else name}"
        if name in _IN_PLACE and isinstance(left, Tensor):
            _refuse_complex(left)
        found = self._complex.result(
            core, whole, (left, right), {},
            lambda a, _: _super(self).operator(core, name, *a),
            lambda a, _: self.operator(core, name, *a),
        )  # fmt: skip
        if found is not NotImplemented:
            return found
        if name not in _IN_PLACE or not isinstance(left, Tensor):
            return self._within(core, whole, lambda: _super(self).operator(core, name, left, right))
        return self._written(core, left, "write x = x + y for x += y", lambda: self._within(
            core, whole, lambda: _super(self).operator(core, name, left, right)
        ))  # fmt: skip

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        whole = f"{value.kind} {name}"
        found = self._complex.result(
            core, whole, (value,), {},
            lambda a, _: _super(self).unary(core, name, a[0]),
            lambda a, _: self.unary(core, name, a[0]),
        )  # fmt: skip
        if found is not NotImplemented:
            return found
        return self._within(core, whole, lambda: _super(self).unary(core, name, value))

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Do ``value[index] = item``: all names of the tensor get the new content."""
        self._written(
            core, value, "make a new tensor", lambda: self._with(core, value, index, item),
            by_statement=True,
        )  # fmt: skip

    def tensor_item(self, core: Core, value: Tensor, index: Value) -> Value:
        """Return ``value[index]``: a view, except where index arrays or NumPy's scalars copy."""
        if value.dtype in COMPLEX and core.emit.builds:
            return self._complex.item(core, value, lambda x: self.tensor_item(core, x, index))
        made = super().tensor_item(core, value, index)
        parts = index if isinstance(index, tuple) else (index,)
        alone = isinstance(made, Tensor) and made.shape == () and value.kind == "numpy.ndarray"
        if alone or any(isinstance(part, Tensor | list | Many) for part in parts):
            return copied(core, made, value)
        if isinstance(made, Tensor):
            self._parts[made.value] = value, index
        return made


# Calls of the program's own objects, and containers of them; reports, which compute nothing.
_STRUCTURE = frozenset(
    f"chainer.{name}"
    for name in (
        "Variable.dtype", "Variable.xp", "Variable.device", "backends.cuda.to_cpu", "cuda.to_cpu",
        "backends.cuda.to_gpu", "cuda.to_gpu",
        "Sequential.forward", "report", "as_array", "Link.init_scope", "Link.children",
        "Link.links", "Link.namedlinks", "Link.params", "Link.namedparams", "Link.count_params",
        "Chain.__getitem__", "using_config.__enter__", "using_config.__exit__",
        *(f"{container}.{method}" for container in ("ChainList", "Sequential")
          for method in ("__iter__", "__getitem__", "__len__")),
        *(f"links.{link}.{method}" for link in ("LSTM", "StatefulPeepholeLSTM", "GRU",
                                                "StatefulZoneoutLSTM", "StatefulGRU",
                                                "StatefulMGU")
          for method in ("reset_state", "set_state")),
    )
) | {"numpy.ndarray.dtype"} | frozenset(
    f"torch.nn.{name}"
    for name in (
        "Sequential.forward", "ModuleList.forward", "Module.__call__", "Module.__getattr__",
        *(f"Module.{method}" for method in (
            "children", "named_children", "modules", "named_modules", "parameters",
            "named_parameters", "buffers", "named_buffers", "get_submodule")),
        *(f"{container}.{method}" for container in ("Sequential", "ModuleList", "ModuleDict",
                                                    "ParameterList", "ParameterDict")
          for method in ("__iter__", "__getitem__", "__len__", "__contains__", "items", "keys",
                         "values", "children", "modules")),
    )
) | {"torch.Tensor.device", "torch.Tensor.is_quantized", "torch._C._log_api_usage_once",
     "torch.is_grad_enabled", "torch.jit.annotate", "torch.autograd.Function.apply",
     "torch.autograd.function.Function.apply",
     *(f"torch.autograd.function.FunctionCtx.{name}" for name in (
         "save_for_backward", "save_for_forward", "mark_non_differentiable", "mark_dirty",
         "set_materialize_grads"))}  # fmt: skip
# Functions whose results share no memory with their arguments, for any operators.
_COPYING = frozenset(
    ("numpy.array", "numpy.copy", "numpy.ndarray.copy", "numpy.ndarray.flatten",
     "numpy.ndarray.astype", "torch.clone", "torch.Tensor.clone", "torch.tensor",
     "numpy.zeros_like", "numpy.ones_like", "torch.zeros_like", "torch.ones_like",
     "torch.index_select", "torch.Tensor.index_select", "numpy.take", "numpy.ndarray.take",
     "torch.take", "torch.Tensor.take")
)  # fmt: skip
# Methods that give a tensor a new content, by the functions that make a tensor of it.
_FILLING = {
    "torch.Tensor.zero_": "torch.zeros_like", "torch.Tensor.fill_": "torch.full_like",
    "numpy.ndarray.fill": "numpy.full_like", "numpy.ndarray.sort": "numpy.sort",
}  # fmt: skip
_IN_PLACE = frozenset(
    f"i{name}"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                 "and", "or", "xor", "lshift", "rshift")
)  # fmt: skip


def _is_in_place(handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Whether a call says ``inplace=True``."""
    names = [*arguments_of(handler)]
    place = names.index("inplace") if "inplace" in names else 1  # as in relu(input, inplace)
    given = arguments[place] if place < len(arguments) else False
    return keywords.get("inplace", given) is True


def _refuse_complex(x: Tensor) -> None:
    """Refuse to write a complex tensor in place: its parts may have been taken before."""
    if x.dtype in COMPLEX:
        raise CheckError(
            "capture",
            "a complex tensor changes in place; make a new one, as in x = x * y for x *= y",
        )


def _super(tables: MeaningTables) -> Any:
    return super(MeaningTables, tables)


def _holds_tensors(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensors, value))
    return isinstance(value, Tensor | Many)


def _stacked(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Tensor | None:
    """Return the stack of a list whose length the data decide."""
    many = arguments[0] if arguments else None
    if not isinstance(many, Many) or many.stacked is None or many.stacked.shape is None:
        return None
    x, last = many.stacked, name.rpartition(".")[2]
    if name in _ARRAYS:
        return _as_array(core, many, x, name, arguments, keywords)
    if last not in _AXIS or name.partition(".")[0] not in ("torch", "numpy", "chainer"):
        return None
    default = 1 if name == "chainer.functions.concat" else 0
    axis = keywords.get("dim", keywords.get("axis", (*arguments, default)[1]))
    axis = {"vstack": 0, "hstack": 0 if len(x.shape or ()) == 2 else 1}.get(last, axis)
    rank = len(many.stacked.shape)
    if not isinstance(axis, int):
        return None
    if last == "stack":
        axis %= rank
    elif rank == 1:
        return None
    elif last == "vstack" and rank == 2:
        return x
    else:
        axis %= rank - 1
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    made: Tensor = core.op("Transpose", x, perm=order) if axis else core.op("Identity", x)
    if last == "stack":
        return made
    shape = list(made.shape or ())
    joined = [*shape[:axis], -1, *shape[axis + 2 :]]
    whole: Tensor = core.op("Reshape", made, core.emit.constant(joined, ir.DataType.INT64))
    return whole


def _as_array(
    core: Core,
    many: Many,
    x: Tensor,
    name: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Tensor:
    """Return a list of numbers or of arrays as an array of a library's own."""
    library = name.partition(".")[0]
    given = keywords.get("dtype", arguments[1] if len(arguments) > 1 else None)
    wanted = x.dtype
    if library == "torch" and wanted == ir.DataType.DOUBLE and x.kind not in _KINDS.values():
        wanted = ir.DataType.FLOAT  # as torch.get_default_dtype() has it
    if isinstance(given, Host) and given.object in _PYTHON:
        given = DType(_PYTHON[given.object], library)
    if isinstance(given, DType):
        wanted = given.dtype
    elif given is not None:
        raise CheckError(
            "capture", f"'{name}' of a list whose length the data decide, with {given}"
        )
    kinds = {ir.DataType.INT64 if kind is int else kind for kind in many.also} - {x.dtype}
    if given is None and kinds:
        raise CheckError(
            "capture",
            "the data decide which types the numbers of a list have, and so which element type the "
            f"array has; say it, as in {name}(items, dtype=...), or give them one type",
        )
    made: Tensor = core.op("Cast", x, to=wanted)
    return replace(made, kind=_KINDS[library])


_ARRAYS = ("numpy.array", "numpy.asarray", "torch.tensor", "torch.as_tensor")
_PYTHON = {float: ir.DataType.DOUBLE, int: ir.DataType.INT64, bool: ir.DataType.BOOL}
_KINDS = {"numpy": "numpy.ndarray", "torch": "torch.Tensor"}
_AXIS = ("stack", "cat", "concat", "concatenate", "vstack", "hstack")
__all__ = ["MeaningTables"]
