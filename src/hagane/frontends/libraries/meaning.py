"""Tables for capture: only functions whose nodes are known to mean them.

The checker asks a table for types; many of its functions are typed without operators, or with
operators that only have the same type. Names with the right values are listed in
``names/meant.py``: each of them is compared with its library in tests/capture.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.chainer.table import VARIABLE
from hagane.frontends.libraries.chainer.uncomputed import UNCOMPUTED
from hagane.frontends.libraries.complex.memory import COMPLEX
from hagane.frontends.libraries.memory.sharing import SharingTables
from hagane.frontends.libraries.memory.turning import turn
from hagane.frontends.libraries.memory.viewing import is_copy, spared
from hagane.frontends.libraries.memory.writing import check_writable, copied, write, written_into
from hagane.frontends.libraries.memory.written import IN_PLACE, is_in_place
from hagane.frontends.libraries.names.compared import MEANT
from hagane.frontends.libraries.names.ignored import check_ignored
from hagane.frontends.libraries.names.structure import STRUCTURE
from hagane.frontends.libraries.names.typed_only import DRAWN_LATE, reason_of, refusal
from hagane.frontends.libraries.stacking import stacked
from hagane.frontends.libraries.torch.composing import PROGRAMS
from hagane.frontends.libraries.torch.functions.arrays.drawing import DRAWN, REDRAWN, redrawn
from hagane.frontends.libraries.torch.functions.numbers.storing import stored
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Bound,
    Function,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    ListRef,
    Many,
    Tensor,
    Value,
)

_NOT_IN_PLACE = ("requires_grad_", "ix_")
# Makers of objects: the operators are in the use of these.
_MAKING = ("__init__",)

_HANDLERS: set[int] = set()

_FUNCTIONS = (Function, Bound, Wrapped)
_MODES = frozenset(f"torch.{name}" for name in ("no_grad", "enable_grad", "inference_mode"))


class MeaningTables(SharingTables):
    """The tables of all libraries, of which only some functions may be used.

    Args:
        used: Is told the name of each function that the program calls.
        trusting: Whether to let all functions pass, as a test of their meaning does.
    """

    def __init__(self, used: Callable[[str], None] = lambda name: None, *, trusting: bool = False):
        super().__init__()
        self._used = used
        self._trusting = trusting
        self._frame: object = None  # of the program, in which a function of a library runs
        self._default = _default_of_torch()

    @property
    def _handlers(self) -> set[int]:
        """The functions behind the listed names; other names of theirs mean the same."""
        if not _HANDLERS:  # one set of tables serves all interpreters
            _HANDLERS.update(id(self._handler(name)) for name in MEANT)
            _HANDLERS.discard(id(None))
        return _HANDLERS

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
        if self._frame is not None and self._frame is core.frame:
            return run()
        self._used(name)
        if name in STRUCTURE:
            return run()
        refused = not self._trusting and not (name in DRAWN and core.emit.draws_noise)
        if refused and name not in DRAWN_LATE:
            self._refuse(name)
        before, self._frame = self._frame, core.frame
        try:
            made = run()
        finally:
            self._frame = before
        if refused and name in DRAWN_LATE and isinstance(made, Tensor):
            place = core.collector.within(core.frame) or core.collector.place_of(core.frame)
            drawn = f" (drawn in {place.file}:{place.line})" if place is not None else ""
            core.emit.explain(made, refusal(name) + drawn)
        return made

    def _refuse(self, name: str) -> None:
        """Refuse a name that is not listed."""
        if self._default != "torch.float32" and name.startswith("torch."):
            raise CheckError(
                "capture",
                f"'{name}': expected torch.float32 as PyTorch's default type, which the tables of "
                f"its functions have, got {self._default}; set torch.set_default_dtype("
                "torch.float32) and name other types where tensors are made",
            )
        last = name.rpartition(".")[2]
        in_place = last.endswith("_") and not last.endswith("__") and last not in _NOT_IN_PLACE
        if in_place and name not in MEANT and not reason_of(name):
            raise CheckError(
                "capture",
                f"'{name}' works in place, which cannot be captured yet; use its result, as in "
                f"x = x.{last.rstrip('_')}(...)",
            )
        if name in UNCOMPUTED:
            raise CheckError("capture", f"'{name}' cannot be captured: {UNCOMPUTED[name]}")
        if name not in MEANT and id(self._handler(name)) not in self._handlers:
            raise CheckError("capture", refusal(name))

    def call(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function or a class of a library."""
        if name in _MODES and arguments and isinstance(arguments[0], _FUNCTIONS):  # a decorator
            return core.call(self.call(core, name, (), {}), arguments, {})
        table = self.table_of(name)
        if table is not None and name in table.functions:
            arguments, keywords = table.named(table.functions[name], name, arguments, keywords)
        joined = stacked(core, name, arguments, keywords)
        if joined is not None:
            return joined
        if table is None or name not in table.functions:
            return super().call(core, name, arguments, keywords)
        into = written_into(name, table.functions[name], arguments, keywords)
        if into is not None:
            return self._into(core, name, into, lambda a, k: self.call(core, name, a, k))
        self._check_ignored(core, name, table.functions[name], arguments, keywords)
        if name.endswith(".at") and arguments and isinstance(arguments[0], Tensor):
            self._written(core, arguments[0], f"make a copy for '{name}'", lambda: self._within(
                core, name, lambda: _super(self).call(core, name, arguments, keywords)
            ), by_statement=True)  # fmt: skip
            return None
        if name == "numpy.copyto" and arguments and isinstance(arguments[0], Tensor):
            self._copied_to(core, *arguments, **keywords)
            return None
        if name.startswith("torch.") and name.endswith("_") and name not in PROGRAMS:
            made = self._in_place(core, name, arguments, keywords)
            if made is not NotImplemented:
                return made
        if name == "numpy.fill_diagonal":
            self._on_diagonal(core, *arguments, **keywords)
            return None
        found = self.complex_parts.result(
            core, name, arguments, keywords,
            lambda a, k: _super(self).call(core, name, a, k),
            lambda a, k: self.call(core, name, a, k),
        )  # fmt: skip
        if found is not NotImplemented:
            self._used(name)
            return found
        x = arguments[0] if arguments else keywords.get("input")
        if name == "numpy.nan_to_num" and keywords.get("copy") is False and isinstance(x, Tensor):
            rest = {key: value for key, value in keywords.items() if key != "copy"}
            return self._written(core, x, "leave out copy=False", lambda: core.op(
                "Identity", self.call(core, name, arguments, rest)
            ))  # fmt: skip
        if not (
            isinstance(x, Tensor)
            and name.startswith("torch.nn.functional.")
            and is_in_place(table.functions[name], arguments, keywords)
        ):
            x = None
        else:
            check_writable(core, x, "leave out inplace=True")
        given = next((v for v in arguments[:1] if isinstance(v, Tensor)), None)
        made = self._within(core, name, lambda: _super(self).call(core, name, arguments, keywords))
        made = spared(name, arguments, keywords, made)
        if keywords.get("requires_grad") is True and isinstance(made, Tensor):
            core.emit.note_trained(made)
        copies = is_copy(name, arguments, keywords, made)
        if copies or not any(map(_holds_tensors, (*arguments, *keywords.values()))):
            return self._noted(name, copied(core, made, given), given)
        if name in PROGRAMS:
            return made
        made = self._noted_view(core, name, given, made)
        return self._noted(name, made, given) if x is None else write(core, x, made)

    def _check_ignored(
        self, core: Core, name: str, handler: Any, arguments: Sequence[Value],
        keywords: Mapping[str, Value],
    ) -> None:  # fmt: skip
        """Refuse arguments that the function of a listed name would ignore."""
        within = self._frame is not None and self._frame is core.frame
        if not within and id(handler) in self._handlers:
            check_ignored(name, handler, arguments, keywords)

    def _in_place(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a function of PyTorch that writes its result into its first argument.

        It is the method of that name, or the function without the underscore: ``F.elu_``.
        """
        table, last = self.table_of(name), name.rpartition(".")[2]
        given = dict(keywords)
        x = arguments[0] if arguments else given.pop("input", None)
        if table is None or not isinstance(x, Tensor) or name.startswith("torch.nn.init."):
            return NotImplemented
        rest = [x, *arguments[1:]]
        if last in table.methods.get(table.tensor, {}):
            return self.call_method(core, f"{table.tensor}.{last}", rest, given)
        plain = name.removesuffix("_")
        if plain not in table.functions:
            return NotImplemented
        remedy = f"use its result, as in x = {plain}(x)"
        return self._written(core, x, remedy, lambda: stored(core, x, self._within(
            core, plain, lambda: _super(self).call(core, plain, rest, given)
        )))  # fmt: skip

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        if name.rpartition(".")[2] in _MAKING:
            return super().call_method(core, name, arguments, keywords)
        into = written_into(name, self._handler(name), arguments, keywords)
        if into is not None:
            return self._into(core, name, into, lambda a, k: self.call_method(core, name, a, k))
        if name != "torch.Tensor.copy_":  # its second flag is of speed
            handler = self._handler(name) or self._handler(name.rstrip("_"))
            self._check_ignored(core, name, handler, arguments, keywords)
        found = self.complex_parts.result(
            core, name, arguments, keywords,
            lambda a, k: _super(self).call_method(core, name, a, k),
            lambda a, k: self.call_method(core, name, a, k),
        )  # fmt: skip
        if found is not NotImplemented:
            self._used(name)
            return found
        plain = name.rstrip("_")
        x = arguments[0] if arguments else None
        if name.endswith("_") and plain.rpartition(".")[2] in _TURNING and isinstance(x, Tensor):
            return turn(core, plain, x, arguments[1:], keywords)
        method = name.rpartition(".")[2]
        if isinstance(x, Tensor) and method in REDRAWN and name.startswith("torch."):
            numbers = redrawn(core, method, x, arguments[1:], keywords)
            if numbers is not None:
                return self._written(core, x, "make a new tensor", lambda: core.op(
                    "Identity", numbers
                ))  # fmt: skip
        computes = name if name in MEANT else plain
        in_place = name.endswith("_") and not name.endswith("__")  # of conversions
        in_place = in_place and method not in _NOT_IN_PLACE
        if in_place and isinstance(x, Tensor) and self._handler(computes) is not None:
            remedy = f"use its result, as in x = x.{plain.rpartition('.')[2]}(...)"
            if x.dtype in COMPLEX:
                return self._written(
                    core, x, remedy,
                    lambda: self.call_method(core, plain, arguments, keywords),
                )  # fmt: skip
            run = _super(self).call_method
            return self._written(core, x, remedy, lambda: stored(core, x, self._within(
                core, computes, lambda: run(core, computes, arguments, keywords)
            )))  # fmt: skip
        filling = _FILLING.get(name)
        if filling is not None and isinstance(x, Tensor):
            if x.kind == "numpy.ndarray" and x.shape == ():
                raise CheckError(
                    "capture",
                    f"'{name.rpartition('.')[2]}' of an array without axes changes nothing if it "
                    "is a scalar of NumPy; assign a new value",
                )
            given = {"fill_value" if key == "value" else key: keywords[key] for key in keywords}
            made = self._written(core, x, f"make a new tensor with {filling}", lambda: core.op(
                "Identity", self._within(core, filling, lambda: _super(self).call(
                    core, filling, arguments, given
                )),
            ))  # fmt: skip
            return None if name.startswith("numpy.") else made
        source = arguments[1] if len(arguments) > 1 else keywords.get("other")
        if name == "torch.Tensor.copy_" and isinstance(x, Tensor) and source is not None:
            return self._written(core, x, "make a new tensor", lambda: self._like(core, source, x))
        made = self._within(
            core, name, lambda: _super(self).call_method(core, name, arguments, keywords)
        )
        if name in PROGRAMS:
            return made
        made = spared(name, arguments, keywords, made)
        if is_copy(name, arguments, keywords, made) and isinstance(x, Tensor):
            return self._noted(name, copied(core, made, x), x)
        return self._noted(name, self._noted_view(core, name, x, made), x)

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        computed = self._of(value).attributes.get(value.kind, {}).get(name)
        if computed is None:
            return super().tensor_attribute(core, value, name)
        whole = f"{value.kind}.{name}"
        found = self.complex_parts.result(
            core, whole, (value,), {},
            lambda a, _: _super(self).tensor_attribute(core, a[0], name),
            lambda a, _: self.tensor_attribute(core, a[0], name),
        )  # fmt: skip
        if found is not NotImplemented:
            return found
        made = self._within(core, whole, lambda: _super(self).tensor_attribute(core, value, name))
        return self._noted_view(core, name, value, made)

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kind = next(v.kind for v in (left, right) if isinstance(v, Tensor))
        whole = f"{kind} {name.removeprefix('i') if name in IN_PLACE else name}"
        if name in IN_PLACE and isinstance(left, Tensor) and left.dtype in COMPLEX:
            return self._written(
                core, left, "write x = x + y for x += y",
                lambda: self.operator(core, name.removeprefix("i"), left, right),
            )  # fmt: skip
        found = self.complex_parts.result(
            core, whole, (left, right), {},
            lambda a, _: _super(self).operator(core, name, *a),
            lambda a, _: self.operator(core, name, *a),
        )  # fmt: skip
        if found is not NotImplemented:
            return found
        is_new = isinstance(left, Tensor) and left.kind == VARIABLE  # a variable's += is a +
        if name in IN_PLACE and (is_new or self.is_scalar(left)):
            name = name.removeprefix("i")
        if name not in IN_PLACE or not isinstance(left, Tensor):
            return self._within(core, whole, lambda: _super(self).operator(core, name, left, right))
        return self._written(core, left, "write x = x + y for x += y", lambda: self._within(
            core, whole, lambda: _super(self).operator(core, name, left, right)
        ))  # fmt: skip

    def item_operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return what ``x[index] += right`` stores, given the item ``left``, which stays."""
        plain = name.removeprefix("i")
        if not isinstance(left, Tensor) or left.dtype in COMPLEX or self.is_scalar(left):
            return self.operator(core, plain, left, right)
        return self._within(core, f"{left.kind} {plain}", lambda: _super(self).operator(
            core, name, left, right
        ))  # fmt: skip

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        whole = f"{value.kind} {name}"
        found = self.complex_parts.result(
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
            return self.complex_parts.item(core, value, lambda x: self.tensor_item(core, x, index))
        made = super().tensor_item(core, value, index)
        parts = index if isinstance(index, tuple) else (index,)
        alone = isinstance(made, Tensor) and made.shape == () and value.kind == "numpy.ndarray"
        alone = alone and Ellipsis not in [part for part in parts if not isinstance(part, Tensor)]
        if alone or any(self._copies(value, part) for part in parts):
            return copied(core, made, value)
        if isinstance(made, Tensor):
            made = self._shared(core, value, made)
            self._parts[made.value] = value, index
        return made

    def _copies(self, x: Tensor, part: Value) -> bool:
        """Whether a part of an index copies the items of an array: a number takes a view."""
        if isinstance(part, Tensor) and part.shape == () and part.dtype.is_integer():
            if x.kind == "numpy.ndarray":
                return not self.is_scalar(part)
            return part.dtype == ir.DataType.UINT8  # PyTorch takes it for a mask
        return isinstance(part, Tensor | list | tuple | ListRef | Many)


# Methods that change the axes of a tensor in place: all its names have others, and no view.
_TURNING = ("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze", "resize", "set")
# Methods that give a tensor a new content, by the functions that make a tensor of it.
_FILLING = {
    "torch.Tensor.zero_": "torch.zeros_like", "torch.Tensor.fill_": "torch.full_like",
    "numpy.ndarray.fill": "numpy.full_like", "numpy.ndarray.sort": "numpy.sort",
    "numpy.ndarray.partition": "numpy.partition",
}  # fmt: skip


def _default_of_torch() -> str:
    """Return the type that PyTorch gives to numbers without one."""
    torch = sys.modules.get("torch")
    return "torch.float32" if torch is None else str(torch.get_default_dtype())


def _super(tables: MeaningTables) -> Any:
    return super(MeaningTables, tables)


def _holds_tensors(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensors, value))
    return isinstance(value, Tensor | Many)


__all__ = ["MeaningTables"]
