"""Tables for capture: only functions whose nodes are known to mean them.

The checker asks a table for types; many of its functions are typed without operators, or with
operators that only have the same type. Those that compute the right values are listed in
``meant.py``: each of them is compared with its library in tests/capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from hagane.frontends.libraries.meant import MEANT
from hagane.frontends.libraries.registry import LibraryTables
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Instance, Library, Many, Tensor, Value

# What makes objects: the operators are in what is done with them.
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
        self._depth = 0

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

    def _within(self, name: str, run: Callable[[], Value]) -> Value:
        """Run what a name stands for; functions that it uses itself are its own business."""
        if not self._depth:
            self._used(name)
            if name.endswith("_") and not name.endswith(("__", "requires_grad_")):
                raise CheckError(
                    "capture",
                    f"'{name}' works in place, which cannot be captured yet; use its result, as in "
                    f"x = x.{name.rpartition('.')[2].rstrip('_')}(...)",
                )
            listed = name in MEANT or id(self._handler(name)) in self._handlers
            if not self._trusting and not listed:
                raise CheckError(
                    "capture",
                    f"'{name}' cannot be captured yet: the checker knows its types, not its values",
                )
        self._depth += 1
        try:
            return run()
        finally:
            self._depth -= 1

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
        return self._within(name, lambda: _super(self).call(core, name, arguments, keywords))

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        if name.rpartition(".")[2] in _MAKING:
            return super().call_method(core, name, arguments, keywords)
        return self._within(name, lambda: _super(self).call_method(core, name, arguments, keywords))

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        computed = self._of(value).attributes.get(value.kind, {}).get(name)
        if computed is None:
            return super().tensor_attribute(core, value, name)
        whole = f"{value.kind}.{name}"
        return self._within(whole, lambda: _super(self).tensor_attribute(core, value, name))

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kind = next(v.kind for v in (left, right) if isinstance(v, Tensor))
        whole = f"{kind} {name.removeprefix('i') if name in _IN_PLACE else name}"
        return self._within(whole, lambda: _super(self).operator(core, name, left, right))

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        return self._within(f"{value.kind} {name}", lambda: _super(self).unary(core, name, value))

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Refuse ``value[index] = item``."""
        raise CheckError(
            "capture", "items of tensors that are set cannot be captured yet; make a new tensor"
        )

    def prepare(self, core: Core, made: Instance, library: Library) -> None:
        """Give a new object of a derived class what its base class sets before ``__init__``."""
        super().prepare(core, made, library)


_IN_PLACE = frozenset(
    f"i{name}"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                 "and", "or", "xor", "lshift", "rshift")
)  # fmt: skip


def _super(tables: MeaningTables) -> Any:
    return super(MeaningTables, tables)


def _stacked(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Tensor | None:
    """Return the stack of a list whose length the data decide."""
    many = arguments[0] if arguments else None
    if not isinstance(many, Many) or many.stacked is None or many.stacked.shape is None:
        return None
    dim = keywords.get("dim", keywords.get("axis", arguments[1] if len(arguments) > 1 else 0))
    if name not in ("torch.stack", "numpy.stack", "numpy.array") or not isinstance(dim, int):
        return None
    rank = len(many.stacked.shape)
    order = list(range(1, rank))
    order.insert(dim % rank, 0)
    made: Tensor = core.op("Transpose", many.stacked, perm=order)
    return made


__all__ = ["MeaningTables", "View"]
