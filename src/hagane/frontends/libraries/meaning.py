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
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Many, Tensor, Value

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
        self._frame: object = None  # of the program, in which a function of a library runs

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
        """Run what a name stands for; functions that it uses itself are its own business."""
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
        if name not in MEANT and id(self._handler(name)) not in self._handlers:
            raise CheckError(
                "capture",
                f"'{name}' cannot be captured yet: the checker knows its types, not its values",
            )

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
        return self._within(core, name, lambda: _super(self).call(core, name, arguments, keywords))

    def call_method(
        self, core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call a method of a library's class; the receiver comes first."""
        if name.rpartition(".")[2] in _MAKING:
            return super().call_method(core, name, arguments, keywords)
        return self._within(
            core, name, lambda: _super(self).call_method(core, name, arguments, keywords)
        )

    def tensor_attribute(self, core: Core, value: Tensor, name: str) -> Value:
        """Return an attribute or a method of a tensor."""
        computed = self._of(value).attributes.get(value.kind, {}).get(name)
        if computed is None:
            return super().tensor_attribute(core, value, name)
        whole = f"{value.kind}.{name}"
        return self._within(core, whole, lambda: _super(self).tensor_attribute(core, value, name))

    def operator(self, core: Core, name: str, left: Value, right: Value) -> Value:
        """Return an operator of which at least one operand is a tensor."""
        kind = next(v.kind for v in (left, right) if isinstance(v, Tensor))
        if name in _IN_PLACE and isinstance(left, Tensor) and _is_shared(core, left):
            raise CheckError(
                "capture",
                "an assignment in place changes a tensor that has another name, or is part of one; "
                "write x = x + y for x += y",
            )
        if name in _IN_PLACE and isinstance(left, Tensor) and _is_argument(left):
            raise CheckError(
                "capture",
                "an assignment in place changes an argument, which the caller sees; write "
                "x = x + y for x += y",
            )
        whole = f"{kind} {name.removeprefix('i') if name in _IN_PLACE else name}"
        return self._within(core, whole, lambda: _super(self).operator(core, name, left, right))

    def unary(self, core: Core, name: str, value: Tensor) -> Value:
        """Return an operator applied to a tensor."""
        whole = f"{value.kind} {name}"
        return self._within(core, whole, lambda: _super(self).unary(core, name, value))

    def set_tensor_item(self, core: Core, value: Tensor, index: Value, item: Value) -> None:
        """Refuse ``value[index] = item``."""
        raise CheckError(
            "capture", "items of tensors that are set cannot be captured yet; make a new tensor"
        )


# Calls of the program's own objects, and containers of them.
_STRUCTURE = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Sequential.forward", "ModuleList.forward", "Module.__call__", "Module.__getattr__",
        *(f"{container}.{method}" for container in ("Sequential", "ModuleList", "ModuleDict",
                                                    "ParameterList", "ParameterDict")
          for method in ("__iter__", "__getitem__", "__len__", "__contains__", "items", "keys",
                         "values", "children", "modules")),
    )
)  # fmt: skip
_IN_PLACE = frozenset(
    f"i{name}"
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                 "and", "or", "xor", "lshift", "rshift")
)  # fmt: skip


# Operators whose results may share memory with their input.
_VIEWS = frozenset(
    ("Reshape", "Transpose", "Slice", "Gather", "Squeeze", "Unsqueeze", "Expand", "Identity",
     "Split", "Flatten")
)  # fmt: skip


def _is_argument(x: Tensor) -> bool:
    """Whether a tensor is an input of the graph that the caller holds."""
    graph = x.value.graph if x.value.is_graph_input() else None
    return graph is not None and graph.name == "captured" and "hagane.state" not in x.value.meta


def _is_shared(core: Core, x: Tensor) -> bool:
    """Whether a change of a tensor in place is seen elsewhere in the program."""
    producer = x.value.producer()
    if producer is not None and producer.op_type in _VIEWS:
        return True
    return sum(_count(content, x) for content in core.heap.contents.values()) > 1


def _count(content: Any, x: Tensor) -> int:
    if isinstance(content, dict):
        return sum(_count(item, x) for item in content.values())
    if isinstance(content, tuple):
        return sum(_count(item, x) for item in content)
    return int(isinstance(content, Tensor) and content.value is x.value)


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


__all__ = ["MeaningTables"]
